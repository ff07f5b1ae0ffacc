"""Values and combinations of options that make no sense are refused with a sentence, before any request."""

import pytest

from tests.command import Command

DEFINE = ["streams", "define", "s", "--source", "q"]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "1e300", "soon"])
@pytest.mark.parametrize(
    "before",
    [
        ["pop", "q", "--wait"],
        ["sql", "-c", "SHOW JOBS", "--timeout"],
        *([*DEFINE, f"--{name}"] for name in ("tumbling", "sliding", "slide", "session", "grace", "lease")),
        *([*DEFINE, f"--{name}"] for name in ("window-retention", "idle")),
    ],
    ids=lambda before: before[-1],
)
def test_a_duration_is_a_finite_number_of_seconds(command: Command, before: list[str], value: str) -> None:
    result = command(*before, value, "--url", "http://127.0.0.1:1")
    assert result.code == 2
    assert f"'{before[-1]}'" in result.err
    assert "seconds" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("given", [["pop", "q", "--group"], ["queues", "list", "--search"], ["pop"]])
def test_a_name_that_is_not_utf_8_cannot_be_sent(command: Command, given: list[str]) -> None:
    result = command(*given, "\udcff", "--url", "http://127.0.0.1:1")
    assert (result.code, result.err.startswith("The request cannot be serialized")) == (1, True)


@pytest.mark.parametrize("value", ["nan", "inf"])
@pytest.mark.parametrize("option", ["--requests-per-second", "--messages-per-second"])
def test_a_rate_is_a_finite_number(command: Command, option: str, value: str) -> None:
    """Neither has a form in JSON: the limit would silently be none."""
    result = command("keys", "create", "k", option, value, "--url", "http://127.0.0.1:1")
    assert (result.code, f"'{option}'" in result.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--tumbling 60 --sliding 300 --slide 60", "--tumbling and --sliding"),
        ("--count 5 --rows 3", "--count and --rows"),
        ("--session 5 --tumbling 5", "--tumbling and --session"),
        ("--tumbling 60 --slide 30", "--slide requires --sliding"),
        ("--slide 30", "--slide requires --sliding"),
        ("--session 30 --slide 30", "--slide requires --sliding"),
        ("--step 3", "--step requires --count"),
        ("--rows 3 --step 3", "--step requires --count"),
    ],
)
def test_a_stream_has_windows_of_one_kind(command: Command, options: str, said: str) -> None:
    result = command(*DEFINE, *options.split(), "--url", "http://127.0.0.1:1")
    assert result.code == 2
    assert said in " ".join(result.err.replace("│", " ").split())
