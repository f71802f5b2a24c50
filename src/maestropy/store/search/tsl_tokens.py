"""Cut the tree dialect into tokens. What they mean together is up to `tsl`."""

import re
from dataclasses import dataclass

from maestropy.store.search.errors import SearchError
from maestropy.store.search.limits import MAX_TOKENS

_TOKEN = re.compile(
    r"""
      (?P<space>  [ \t\r\n\v]+ )
    | (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? )
    | (?P<string> '[^']*(?:''[^']*)*' )
    | (?P<unfinished> '.* )
    | (?P<quoted> "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` | \[[^\]]*\] )
    | (?P<word>   [A-Za-z_][A-Za-z_0-9]* )
    | (?P<symbol> <= | >= | <> | != | ~= | ~! | [<>=(),.*/%+-] )
    | (?P<unknown> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset({"AND", "OR", "NOT", "LIKE", "ILIKE", "BETWEEN", "IN", "IS", "NULL"})


@dataclass(frozen=True, slots=True)
class Token:
    """One word, symbol or literal; `keyword` tokens are in upper case, literals as written.

    An `unfinished` literal and an `unknown` character are tokens too, which no rule of the grammar accepts.
    """

    kind: str
    text: str
    position: int
    """Of its first character, from 1."""


def tokens(text: str) -> list[Token]:
    """Return the tokens of `text` without the space between them."""
    tokens_found = []
    for match in _TOKEN.finditer(text):
        kind, word = str(match.lastgroup), match.group()
        if kind == "word" and word.upper() in _KEYWORDS:
            kind, word = "keyword", word.upper()
        if kind != "space":
            tokens_found.append(Token(kind, word, match.start() + 1))
        if len(tokens_found) > MAX_TOKENS:
            raise SearchError(f"the search holds more than {MAX_TOKENS} words and symbols")
    return tokens_found
