"""Build scripts for `psql` in a pod, and read its output.

Pure. Identifiers become literals of an EXECUTE: printable ASCII between quotes. So they cannot inject SQL, psql
commands, psql variables, or control characters for the terminal that shows the script.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

_ENDING = "\\q\n"
"""An exec of the older protocol cannot close the standard input, so the script itself ends psql."""


def literal(text: str) -> str:
    """Return a SQL string literal for `text`, safe under every setting of the server."""
    if "\0" in text:
        raise ValueError("PostgreSQL has no text with a NUL in it")
    if all(" " <= char <= "~" and char != "\\" for char in text):
        return "'" + text.replace("'", "''") + "'"
    return "E'" + "".join(_escaped(char) for char in text) + "'"


def _escaped(char: str) -> str:
    if char in "'\\":
        return char * 2
    if " " <= char <= "~":
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def query(sql: str, parameters: Sequence[str], *, timeout_seconds: int) -> str:
    """Return the part a person reviews: one read-only transaction with one statement."""
    kinds = ", ".join(["text"] * len(parameters))
    return (
        "BEGIN READ ONLY;\n"
        f"SET LOCAL statement_timeout = '{int(timeout_seconds)}s';\n"
        f"PREPARE trace_query ({kinds}) AS\n{sql};\n"
        f"EXECUTE trace_query ({', '.join(map(literal, parameters))});\n"
        "ROLLBACK;\n"
    )


def script(reviewed: str) -> str:
    """Return the whole script: how psql is to print, the reviewed part, and its end."""
    settings = ("\\set ON_ERROR_STOP on", "\\pset pager off", "\\pset format unaligned", "\\pset tuples_only on")
    return "\n".join(settings) + "\nSET client_encoding = 'UTF8';\n" + reviewed + _ENDING


def documents(printed: bytes) -> Iterator[dict[str, Any]]:
    """Yield the documents among what psql printed; greetings and command tags are passed over."""
    for line in printed.splitlines():
        if not line.startswith(b"{"):
            continue
        try:
            document = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(document, dict) and "trace" in document:
            yield document


def complaint(printed: bytes) -> str:
    """Return psql's own first complaint."""
    lines = [line.strip() for line in printed.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "FATAL" in line or "error" in line]
    return (errors or lines or ["no reason given"])[0][:300]
