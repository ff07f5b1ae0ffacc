"""`queenspark sql apply`: the difference first, then all of it or nothing."""

from pathlib import Path

from tests.command import Command
from tests.wire.sql import Sql


def test_a_file_is_applied_after_its_difference_was_shown(
    queenspark: Command, sql: Sql, clicks: str, tmp_path: Path
) -> None:
    job = f"busy_{clicks}"
    file = tmp_path / "jobs.sql"
    statement = f"CREATE OR REPLACE STREAM {job} AS SELECT page FROM {clicks}"
    file.write_text(
        f"CREATE OR REPLACE STREAM {clicks} (page STRING, ms BIGINT) WITH (queue = '{clicks}');\n{statement};"
    )
    refused = queenspark("sql", "apply", str(file))
    assert refused.code == 2
    assert refused.out.splitlines() == [
        f"unchanged {clicks}",
        f"create    {job}",
        f"          CREATE STREAM {job} AS SELECT page FROM {clicks}",
    ]
    assert "Apply 1 change? Pass --yes" in refused.err
    assert "Nothing was changed" in queenspark("sql", "apply", str(file), "--dry-run").err
    assert queenspark("jobs", "show", job).code == 1
    assert "Applied 1 change." in queenspark("sql", "apply", str(file), "--yes").err
    assert sql.job(job)["version"] == 1
    assert "Nothing to do" in queenspark("sql", "apply", str(file)).err

    file.write_text(f"{statement} WHERE ms > 5; INSERT INTO {clicks} VALUES ('a', 1); DROP STREAM {job}")
    shown = queenspark("sql", "apply", str(file), "--dry-run").out.splitlines()
    assert shown == [
        f"replace   {job}, by position",
        f"          - CREATE STREAM {job} AS SELECT page FROM {clicks}",
        f"          + CREATE STREAM {job} AS SELECT page FROM {clicks} WHERE ms > 5",
        f"insert    {clicks}, 1 row",
        f"drop      {job}",
    ]


def test_applying_a_wrong_file_shows_the_error_and_changes_nothing(
    queenspark: Command, clicks: str, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.sql"
    file.write_text(f"CREATE STREAM busy_{clicks} AS SELECT page FROM {clicks};\nSELECT page FROM {clicks}")
    result = queenspark("sql", "apply", str(file), "--yes")
    assert result.code == 1
    assert "only statement" in result.err
    assert f"2 | SELECT page FROM {clicks}" in result.err
    assert queenspark("jobs", "show", f"busy_{clicks}").code == 1
    file.write_text(f"SELECT page FROM {clicks}")
    assert queenspark("sql", "apply", str(file), "--yes").code == 2


def test_apply_with_json_prints_the_results(queenspark: Command, clicks: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.sql"
    file.write_text(f"CREATE OR REPLACE STREAM busy_{clicks} AS SELECT page FROM {clicks}")
    (made,) = queenspark("sql", "apply", str(file), "--yes", "--json").json_lines()
    assert (made["name"], made["changed"]) == (f"busy_{clicks}", True)
    (again,) = queenspark("sql", "apply", str(file), "--json").json_lines()
    assert again["changed"] is False


def test_options_before_apply_are_not_ignored(queenspark: Command, tmp_path: Path) -> None:
    result = queenspark("sql", "--dry-run", "apply", str(tmp_path / "jobs.sql"))
    assert result.code == 2
    assert "follow `apply`" in result.err
