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
    | (?P<quoted> "[^"]*(?:""[^"]*)*" | `[^`]*(?:``[^`]*)*` | \[[^\]]*\] )
    | (?P<word>   [A-Za-z_][A-Za-z_0-9]* )
    | (?P<symbol> <= | >= | <> | != | ~= | ~! | [<>=(),.*/%+-] )
    """,
    re.VERBOSE,
)
_KEYWORDS = frozenset({"AND", "OR", "NOT", "LIKE", "ILIKE", "BETWEEN", "IN", "IS", "NULL"})


@dataclass(frozen=True, slots=True)
class Token:
    """One word, symbol or literal; `keyword` tokens are in upper case, literals as written."""

    kind: str
    text: str


END = Token("end", "")


def tokens(text: str) -> list[Token] | None:
    """Return the tokens of `text` without the space between them, or None where it is not the dialect."""
    tokens_found = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            return None
        position = match.end()
        kind, word = str(match.lastgroup), match.group()
        if kind == "word" and word.upper() in _KEYWORDS:
            kind, word = "keyword", word.upper()
        if kind != "space":
            tokens_found.append(Token(kind, word))
        if len(tokens_found) > MAX_TOKENS:
            raise SearchError(f"the search holds more than {MAX_TOKENS} words and symbols")
    return tokens_found
