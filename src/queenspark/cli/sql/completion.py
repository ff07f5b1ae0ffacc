"""Completion of statements: keywords, options, and names that exist at the broker."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from queenspark.cli.sql.names import Names
from queenspark.cli.sql.text import Token, spoken
from queenspark.cli.sql.words import CLAUSES, OPTIONS, SHOWN, STARTS, TYPES, name_text

_TYPED = re.compile(r"[\w.`]*$")
_READ = ("FROM", "INTO", "DESCRIBE", "EXTENDED")


class Word(NamedTuple):
    """A completion: text, kind, and whether lower case is allowed."""

    text: str
    what: str
    any_case: bool = False


class SqlCompleter(Completer):
    """Completes names and keywords, best match for the context first."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """The completions of the word before the cursor."""
        before = document.text_before_cursor
        match = _TYPED.search(before)
        typed = match.group() if match else ""
        if not typed and not complete_event.completion_requested:
            return
        found = _statement(spoken(before[: len(before) - len(typed)]))
        if found and found[-1].kind == "open":
            return
        for word in self._fitting(found, document.text):
            if word.text.upper().startswith(typed.upper()) or word.text.upper().startswith(
                f"`{typed.upper()}"
            ):
                text = word.text.lower() if word.any_case and typed.islower() else word.text
                yield Completion(text, -len(typed), display_meta=word.what)

    def _fitting(self, before: list[Token], text: str) -> Iterable[Word]:
        if not before:
            return _keywords(STARTS)
        last = before[-1].upper
        words = [token.upper for token in before]
        if last == "SHOW":
            return _keywords(SHOWN)
        if last in ("PAUSE", "RESUME", "RESTART") and len(before) == 1:
            return _keywords(["JOB"])
        if last == "JOB":
            return _words("job", map(name_text, self._names.jobs()))
        if last == "INTO" or (last == "STREAM" and words[0] == "DROP"):
            return _words("stream", map(name_text, self._names.streams()))
        if last in _READ:
            return self._sources() + (_keywords(["EXTENDED"]) if last == "DESCRIBE" else [])
        if _in_options(words):
            return _words("option", OPTIONS) if last in ("(", ",") else []
        if words[0] == "CREATE" and "STREAM" in words and "(" in words and "AS" not in words:
            return _keywords(TYPES)
        return self._expressions(text)

    def _sources(self) -> list[Word]:
        streams = self._names.streams()
        queues = [name for name in self._names.queues() if name not in streams]
        return [*_words("stream", map(name_text, streams)), *_words("queue", map(name_text, queues))]

    def _expressions(self, text: str) -> Iterator[Word]:
        for source in _sources_of(spoken(text)):
            for name, kind in self._names.columns(source):
                yield Word(name_text(name), kind)
        yield from _keywords(CLAUSES)
        for name, signature in self._names.functions():
            yield Word(f"{name}(", signature, any_case=True)


def _statement(found: list[Token]) -> list[Token]:
    """The tokens after the last semicolon."""
    ends = [index for index, token in enumerate(found) if token.upper == ";"]
    return found[ends[-1] + 1 :] if ends else found


def _sources_of(found: list[Token]) -> list[str]:
    """The streams and queues that a text reads or inserts into."""
    sources = []
    for index, token in enumerate(found[:-1]):
        if token.upper in _READ and found[index + 1].kind in ("word", "quoted"):
            end = index + 2
            while (
                end + 1 < len(found) and found[end].upper == "." and found[end + 1].kind in ("word", "quoted")
            ):
                end += 2
            sources.append("".join(each.text for each in found[index + 1 : end]))
    return list(dict.fromkeys(sources))


def _in_options(words: list[str]) -> bool:
    """Whether the cursor is within the parentheses after WITH."""
    starts = [index for index in range(len(words) - 1) if words[index : index + 2] == ["WITH", "("]]
    return bool(starts) and ")" not in words[starts[-1] :]


def _words(what: str, texts: Iterable[str]) -> list[Word]:
    return [Word(text, what) for text in texts]


def _keywords(texts: Iterable[str]) -> list[Word]:
    return [Word(text, "", any_case=True) for text in texts]
