"""The text of statements: tokens, statement ends, and how statements are batched.

The broker reads statements for good; this is as much of it as a prompt needs, without the server's packages.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*)
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
    |(?P<quoted>`[^`]*`)
    |(?P<open>['"`])
    |(?P<number>\d[\w.]*)
    |(?P<word>[^\W\d]\w*)
    |(?P<blank>\s+)
    |(?P<symbol>.)""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A piece of the text: comment, string, quoted, number, word, blank, symbol, or open (not closed yet)."""

    kind: str
    text: str
    start: int

    @property
    def upper(self) -> str:
        """A word in upper case, as keywords are written; a symbol unchanged."""
        return self.text.upper() if self.kind in ("word", "symbol") else ""


def tokens(text: str) -> Iterator[Token]:
    """All pieces of a text, in order and without a gap."""
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            end = _after_comment(text, at)
            yield Token("open" if end is None else "comment", text[at:end], at)
            at = len(text) if end is None else end
            continue
        match = _TOKEN.match(text, at)
        assert match is not None, "every character begins some token"
        kind = match.lastgroup or "symbol"
        end = len(text) if kind == "open" else match.end()
        yield Token(kind, text[at:end], at)
        at = end


def _after_comment(text: str, start: int) -> int | None:
    """The end of a comment, which can have others inside; None when it is not closed."""
    depth = 0
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return start + mark.end()
    return None


def spoken(text: str) -> list[Token]:
    """The tokens without blanks and comments."""
    return [token for token in tokens(text) if token.kind not in ("blank", "comment")]


def is_complete(text: str) -> bool:
    """Whether a text ends with a semicolon."""
    found = spoken(text)
    return bool(found) and found[-1].upper == ";"


def requests(text: str) -> list[str]:
    """The texts to send, one after the other: a SELECT alone, other statements together.

    Each begins with the blanks and line ends of the text before it, so that an error's position is one in
    the whole text.
    """
    parts: list[tuple[bool, int, int]] = []
    for start, end, first in _statements(text):
        alone = first == "SELECT"
        if parts and not alone and not parts[-1][0]:
            parts[-1] = (False, parts[-1][1], end)
        else:
            parts.append((alone, start, end))
    return [re.sub(r"[^\n]", " ", text[:start]) + text[start:end] for _, start, end in parts]


def _statements(text: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and first word of every statement."""
    first: Token | None = None
    for token in spoken(text):
        if token.upper == ";":
            if first is not None:
                yield first.start, token.start + 1, first.upper
            first = None
        elif first is None:
            first = token
    if first is not None:
        yield first.start, len(text), first.upper
