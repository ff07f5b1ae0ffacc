"""String literals: Spark's escapes, in both directions."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[01][0-7]{2}|.)", re.DOTALL)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def unescaped(text: str) -> str:
    """Replace the escapes in the text between the quotes."""
    if "\\" not in text:
        return text
    replaced = _ESCAPE.sub(_character, text)
    # Two \\u escapes can form a surrogate pair, as in Java.
    return replaced.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(match: re.Match[str]) -> str:
    escape = match.group(1)
    if len(escape) > 1:
        code = int(escape[1:], 16) if escape[0] in "uU" else int(escape, 8)
        return chr(code) if code <= 0x10FFFF else match.group()
    return _NAMED.get(escape, escape)


def quoted(text: str) -> str:
    """Format a text as a literal."""
    text = text.replace("\\", "\\\\").replace("'", "''")
    return (
        "'" + text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\0", "\\000") + "'"
    )
