"""The text of statements: where one ends, batching, completion and highlighting."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from queenspark.cli.sql.completion import SqlCompleter
from queenspark.cli.sql.highlighting import SqlLexer
from queenspark.cli.sql.history import SqlHistory, history
from queenspark.cli.sql.names import Names
from queenspark.cli.sql.text import is_complete, requests, tokens
from queenspark.cli.sql.values import Value, printable, value_of
from queenspark.client.sql_results import SqlColumn


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;",
        "SELECT 1 ;  -- done",
        "SELECT ';' ; /* ; /* nested */ */\n",
        "SELECT `a;b`;",
        "x;;",
        "r'\\';",
    ],
)
def test_a_statement_ends_with_its_semicolon(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize(
    "text",
    ["", "SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT /* ;", "SELECT `a;", 'SELECT "a;', "SELECT 1; x"],
)
def test_a_semicolon_elsewhere_ends_nothing(text: str) -> None:
    assert not is_complete(text)


def test_tokens_cover_the_whole_text() -> None:
    text = "SELECT 'it''s' || \"x\\\"\", 30s, a.b[0] /* c /* d */ */ -- e\nFROM `odd name`; 'open"
    assert "".join(token.text for token in tokens(text)) == text


def test_a_select_is_sent_alone_and_others_together_with_their_positions() -> None:
    text = "SHOW JOBS; SHOW QUEUES;\n-- a comment\nSELECT 1;;\n  select 2; DROP STREAM a"
    assert requests(text) == [
        "SHOW JOBS; SHOW QUEUES;",
        " " * 23 + "\n" + " " * 12 + "\nSELECT 1;",
        " " * 23 + "\n" + " " * 12 + "\n" + " " * 10 + "\n  select 2;",
        " " * 23 + "\n" + " " * 12 + "\n" + " " * 10 + "\n" + " " * 12 + "DROP STREAM a",
    ]
    assert requests(" ; -- nothing\n;") == []


class Known(Names):
    """A fixed list of names."""

    def __init__(self) -> None:
        """No broker is asked."""

    def streams(self) -> list[str]:
        return ["clicks", "shop.totals"]

    def queues(self) -> list[str]:
        return ["clicks", "odd-queue"]

    def jobs(self) -> list[str]:
        return ["shop.totals"]

    def functions(self) -> list[tuple[str, str]]:
        return [("COUNT", "COUNT(*)"), ("CONCAT", "CONCAT(value, …)")]

    def columns(self, name: str) -> list[tuple[str, str]]:
        return {"clicks": [("country", "string"), ("my ms", "bigint")]}.get(name, [])


def completed(before: str, after: str = "", *, asked: bool = True) -> list[str]:
    """The completions at a cursor position."""
    document = Document(before + after, len(before))
    event = CompleteEvent(completion_requested=asked)
    return [completion.text for completion in SqlCompleter(Known()).get_completions(document, event)]


def test_completions_fit_the_cursor_position() -> None:
    assert completed("SEL") == ["SELECT"]
    assert "help" in completed("")
    assert completed("show j") == ["jobs"]
    assert completed("SELECT * FROM ") == ["clicks", "shop.totals", "`odd-queue`"]
    assert completed("SELECT * FROM odd") == ["`odd-queue`"]
    assert completed("DESCRIBE e") == ["extended"]
    assert completed("pause ") == ["JOB"]
    assert completed("PAUSE JOB ") == ["shop.totals"]
    assert completed("DROP STREAM c") == ["clicks"]
    assert completed("INSERT INTO s") == ["shop.totals"]
    assert completed("SELECT 1 FROM a; RESTART JOB s") == ["shop.totals"]
    assert completed("CREATE STREAM a (b STR") == ["STRING"]
    assert completed("SELECT a FROM clicks WITH (idle") == ["idle_timeout"]
    assert completed("SELECT a FROM clicks WITH (grace = ") == []


def test_columns_of_the_streams_that_a_statement_reads_come_first() -> None:
    assert completed("SELECT co", " FROM clicks") == ["country", "count(", "concat("]
    assert completed("SELECT my", " FROM clicks") == ["`my ms`"]
    assert completed("SELECT a FROM clicks WHERE cou") == ["country", "count("]
    assert completed("SELECT cou", " FROM elsewhere") == ["count("]


def test_nothing_is_offered_within_strings_or_before_a_letter_is_typed() -> None:
    assert completed("SELECT 'sel") == []
    assert completed("SELECT * FROM ", asked=False) == []
    assert completed("SELECT * FROM c", asked=False) == ["clicks"]


def test_keywords_strings_and_comments_are_coloured_over_several_lines() -> None:
    lines = SqlLexer().lex_document(Document("select 'a\nb', 1 -- x"))
    assert lines(0) == [("class:keyword", "select"), ("", " "), ("class:string", "'a")]
    assert lines(1)[0] == ("class:string", "b'")
    assert lines(1)[-1] == ("class:comment", "-- x")
    assert lines(2) == []


def test_the_history_is_private_and_without_secrets(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    kept = history()
    assert isinstance(kept, SqlHistory)
    for text in ("SHOW JOBS;", "CREATE SINK a FROM b WITH (sasl_Password = 'x1');", "SELECT\n1;"):
        kept.append_string(text)
    file = folder / "queenspark" / "sql_history"
    assert "x1" not in file.read_text()
    assert list(history().load_history_strings()) == ["SELECT\n1;", "SHOW JOBS;"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_without_a_folder_there_is_still_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    history().append_string("SHOW JOBS;")


@pytest.mark.parametrize(
    ("sent", "kind", "shown"),
    [
        (b"null", "string", Value("NULL", is_null=True)),
        (b'"NULL"', "string", Value("NULL")),
        (b"12345678901234567890.123456789", "decimal(38, 9)", Value("12345678901234567890.123456789")),
        (b'"a\\nb\\u001b[31m"', "string", Value("a\\nb\\x1b[31m")),
        (b'{"a":1}', "json", Value('{"a":1}')),
        (b'"a"', "json", Value('"a"')),
        (b"true", "boolean", Value("true")),
    ],
)
def test_values_are_shown_unchanged(sent: bytes, kind: str, shown: Value) -> None:
    assert value_of(sent, SqlColumn("c", kind)) == shown


def test_a_surrogate_cannot_break_a_line() -> None:
    assert printable("a\ud800\u2028") == "a\\ud800\\u2028"
