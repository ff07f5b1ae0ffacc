"""A SELECT that the pipeline runs: its rows reach the client as they are made."""

from tests.jobs.system import Jobs


def test_rows_reach_the_client_as_they_are_made(jobs: Jobs) -> None:
    jobs.push("q", [{"n": 1, "user": "a"}, {"n": 2, "user": "b"}])
    with jobs.sql.select(f"SELECT n * 2 AS twice, user FROM {jobs.name('q')} LIMIT 3") as lines:
        assert next(lines)["columns"] == [
            {"name": "twice", "type": "bigint"}, {"name": "user", "type": "string"},
        ]  # fmt: skip
        jobs.drain()
        assert sorted([next(lines), next(lines)]) == [[2, "a"], [4, "b"]]
        jobs.push("q", [{"n": 3, "user": "c"}, {"n": 4, "user": "d"}])
        jobs.drain()
        ((twice, user),) = lines
        assert (twice, user) in [(6, "c"), (8, "d")]


def test_aggregates_reach_the_client(jobs: Jobs) -> None:
    jobs.push("q", [{"n": n, "user": "ab"[n % 2]} for n in range(10)])
    statement = f"SELECT user, SUM(n) AS s FROM {jobs.name('q')} GROUP BY user WINDOW COUNT(5) LIMIT 2"
    with jobs.sql.select(statement) as lines:
        next(lines)
        jobs.drain()
        assert sorted(lines) == [["a", 20], ["b", 25]]
