"""Prints why the next window of a stream or job is not sealed yet."""

from typing import Any

from queenspark.cli.output import out, records_of


def print_explanation(noun: str, name: str, response: dict[str, Any]) -> None:
    """Print emitted windows, the next window, and the reasons."""
    console = out()
    for line in (_sealed(noun, name, response["sealed"]), _next(response["next"])):
        console.print(line, soft_wrap=True)
    for number, reason in enumerate(records_of(response, "reasons"), start=1):
        since = f" (since {reason['since']})" if reason["since"] is not None else ""
        console.print(f"{number}. {_sentence(reason['text'])}{since}", soft_wrap=True)
        console.print(f"   Fix: {reason['fix']}.", soft_wrap=True)


def _sealed(noun: str, name: str, sealed: dict[str, Any]) -> str:
    given = f"{sealed['windows']:,} emitted" if sealed["windows"] else "nothing emitted yet"
    last = f", the last at {sealed['lastAt']}" if sealed["lastAt"] is not None else ""
    return f"The {noun} {name}: {given}{last}; {sealed['openWindows']:,} open."


def _next(window: dict[str, Any] | None) -> str:
    if window is None:
        return "Next window: none open."
    records = f"{window['records']:,} record{'' if window['records'] == 1 else 's'}"
    if window["end"] is None:
        return f"Next window: key {window['key']}, {records} since {window['start']}."
    return (
        f"Next window: key {window['key']}, {window['start']} to {window['end']}, {records}; "
        f"sealed at about {window['sealedAtAbout']}."
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
