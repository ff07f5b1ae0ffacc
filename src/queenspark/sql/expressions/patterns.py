r"""LIKE and RLIKE patterns as regular expressions of polars, with Java's meaning.

Java and Rust agree on a core of the syntax. Anything outside of it is rejected, and constructs with a
different meaning (`.`, `\d`, `\w`, `\s`, `$`) are spelled out.
"""

from __future__ import annotations

import re

from ..source import Span

_CLASSES = {
    "d": "0-9", "w": "a-zA-Z_0-9", "s": r" \t\n\x0B\f\r",
}  # fmt: skip
_ANY = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_PLAIN_ESCAPES = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f"}
_META = set("\\.[]{}()*+-?^$|&#~/ ")
#: The last line break of a text: Java's `$` also matches before it.
LAST_BREAK = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])\z"


def like_pattern(pattern: str, escape: str, span: Span) -> str:
    """Translate a LIKE pattern to a regular expression."""
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise span.error(f"the pattern {pattern!r} ends with the escape character; double it")
            if following not in ("%", "_", escape):
                raise span.error(
                    f"the escape character must precede % or _ in {pattern!r}, not {following!r}"
                )
            parts.append(_escaped(following))
        elif character == "%":
            parts.append(".*")
        else:
            parts.append("." if character == "_" else _escaped(character))
    return f"(?s)\\A(?:{''.join(parts)})\\z"


def _escaped(character: str) -> str:
    return f"\\x{{{ord(character):x}}}" if not character.isalnum() or not character.isascii() else character


class RegexTranslator:
    """Translates one Java regular expression, or rejects it."""

    def __init__(self, pattern: str, span: Span) -> None:
        self._pattern = pattern
        self._span = span
        self._at = 0
        self.ends = False  # whether `$` occurs

    def translate(self) -> str:
        """The pattern for polars."""
        text = self._alternatives()
        if self._at < len(self._pattern):
            raise self._refused("an unmatched )")
        return text

    def _alternatives(self) -> str:
        parts = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            parts.append(self._sequence())
        return "|".join(parts)

    def _sequence(self) -> str:
        parts = []
        while (character := self._peek()) not in ("", "|", ")"):
            if character == "$":
                self._at += 1
                if self._peek() not in ("", "|") and self._pattern[self._at :].strip(")") != "":
                    raise self._refused("$ within a pattern")
                self.ends = True
                parts.append(r"\z")
                continue
            if character == "^":
                self._at += 1
                if self._peek() in ("*", "+", "?", "{"):
                    raise self._refused("a repeated ^")
                parts.append(r"\A")
                continue
            parts.append(self._atom() + self._quantifier())
        return "".join(parts)

    def _atom(self) -> str:
        character = self._next()
        match character:
            case ".":
                return _ANY
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape(inside=False)
            case "*" | "+" | "?" | "{":
                raise self._refused(f"{character} with nothing before it")
            case "]" | "}":
                raise self._refused(f"a lone {character}")
        return _escaped(character)

    def _group(self) -> str:
        if self._peek() == "?":
            if self._pattern[self._at : self._at + 2] != "?:":
                raise self._refused("a special group (?…)")
            self._at += 2
        inner = self._alternatives()
        if self._peek() != ")":
            raise self._refused("a group that is not closed")
        self._at += 1
        return f"(?:{inner})"

    def _class(self) -> str:
        negated = self._peek() == "^"
        if negated:
            self._at += 1
        parts: list[str] = []
        while (character := self._next()) != "]":
            if character in ("[", "&", "^") or (character == "-" and not parts):
                raise self._refused(f"{character} inside […]")
            one = self._escape(inside=True) if character == "\\" else _escaped(character)
            if self._peek() == "-":
                self._at += 1
                last = self._next()
                if last in ("]", "[", "\\", "-", "&") or (len(one) > 1 and one[:2] != "\\x"):
                    raise self._refused("a range inside […] whose ends are not single plain characters")
                if character > last:
                    raise self._refused("a reversed range inside […]")
                one = f"{one}-{_escaped(last)}"
            parts.append(one)
        if not parts:
            raise self._refused("an empty […]")
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _escape(self, *, inside: bool) -> str:
        character = self._next()
        if character in _CLASSES:
            return _CLASSES[character] if inside else f"[{_CLASSES[character]}]"
        if character.lower() in _CLASSES and not inside:
            return f"[^{_CLASSES[character.lower()]}]"
        if character in _PLAIN_ESCAPES:
            return _PLAIN_ESCAPES[character]
        if character in _META:
            return _escaped(character)
        raise self._refused(f"\\{character}")

    def _quantifier(self) -> str:
        found = re.match(r"(?:[*+?]|\{(\d{1,3})(,(\d{0,3}))?\})([?+]?)", self._pattern[self._at :])
        if found is None:
            return ""
        self._at += found.end()
        if found[4] == "+" or self._peek() in ("*", "+", "?", "{"):
            raise self._refused("a possessive or repeated quantifier")
        if found[3] and int(found[3]) < int(found[1]):
            raise self._refused("a quantifier whose minimum exceeds its maximum")
        return found.group()

    def _peek(self) -> str:
        return self._pattern[self._at] if self._at < len(self._pattern) else ""

    def _next(self) -> str:
        character = self._peek()
        if not character:
            raise self._refused("an unfinished […] or escape at its end")
        self._at += 1
        return character

    def _refused(self, what: str) -> Exception:
        return self._span.error(f"the pattern {self._pattern!r} has {what}, which is not supported")


def plain_separator(pattern: str, span: Span) -> str:
    """The text that a separator of SPLIT matches; it must match a single text."""
    text = re.sub(r"\\([^a-zA-Z0-9])", lambda match: f"\0{ord(match[1])}\0", pattern)
    if not pattern or any(character in "\\.[]{}()*+?^$|" for character in text):
        raise span.error(
            f"the separator {pattern!r} is a regular expression; "
            "SPLIT takes plain text, with \\ before . | * and so on"
        )
    return re.sub("\0(\\d+)\0", lambda match: chr(int(match[1])), text)
