"""Colours for statements while they are typed."""

from collections.abc import Callable

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from queenspark.cli.sql.text import Token, tokens
from queenspark.cli.sql.words import KEYWORDS

STYLE = Style.from_dict({
    "prompt": "ansibrightmagenta bold",
    "continuation": "ansibrightblack",
    "keyword": "ansiblue bold",
    "string": "ansigreen",
    "number": "ansicyan",
    "comment": "ansibrightblack italic",
})  # fmt: skip

_CLASSES = {
    "string": "class:string",
    "open": "class:string",
    "number": "class:number",
    "comment": "class:comment",
}


class SqlLexer(Lexer):
    """Colours keywords, strings, numbers and comments."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The pieces of each line with their colours."""
        lines = list(split_lines([(_style(token), token.text) for token in tokens(document.text)]))
        return lambda number: lines[number] if number < len(lines) else []


def _style(token: Token) -> str:
    return "class:keyword" if token.upper in KEYWORDS else _CLASSES.get(token.kind, "")
