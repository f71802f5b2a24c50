"""Join the pieces into which container runtimes split long lines, at 16 KiB mostly.

The files of CRI mark a piece with `P` and the last one with `F`; those of Docker end a line, but no piece, with a line
feed. Pieces of standard output and standard error alternate. What a joined line takes the place of becomes empty lines,
so that line numbers stay right.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import orjson

from maestropy.trace.logs.read.inputs.raw_stream import RawStream

_LONGEST: Final = 16 << 20
"""Pieces that are longer together are left as they are."""
_CRI: Final = re.compile(rb"(\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)) (stdout|stderr) ([FP]) ?")
_CRI_PIECE: Final = re.compile(rb" std(?:out|err) P ")
_DOCKER: Final = re.compile(rb'\{\s*"log"\s*:')
_DOCKER_PIECE: Final = re.compile(rb'(?<!\\n)"\s*,\s*"stream"\s*:')


def has_pieces(sample: bytes, path: Path | None) -> bool:
    """Say whether a log may have split lines: one at `path` has pieces; any other is written by a runtime."""
    piece = _CRI_PIECE if _CRI.match(sample) else _DOCKER_PIECE if _DOCKER.match(sample) else None
    if piece is None or path is None:
        return piece is not None
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        return piece.search(memory) is not None


class JoinedLines(RawStream):
    """A log with its split lines joined."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lines = self._joined()
        self._rest = b""

    def next_bytes(self, length: int) -> bytes:
        self._rest = self._rest or next(self._lines, b"")
        data, self._rest = self._rest[:length], self._rest[length:]
        return data

    def _joined(self) -> Iterator[bytes]:
        pieces: dict[bytes, list[bytes]] = {}
        """By stream, the lines of a record that has not ended."""
        sizes: dict[bytes, int] = {}
        while line := self._stream.readline(_LONGEST):
            name, is_piece = _piece(line)
            if is_piece and sizes.get(name, 0) + len(line) <= _LONGEST:
                pieces.setdefault(name, []).append(line)
                sizes[name] = sizes.get(name, 0) + len(line)
                yield b"\n"
            elif name in pieces:
                yield _whole([*pieces.pop(name), line])
                del sizes[name]
            else:
                yield line
        # The log ends within a line.
        yield from (_whole(own) for own in pieces.values())


def _piece(line: bytes) -> tuple[bytes, bool]:
    """Return the stream that a line was written to, and whether the line goes on; no stream for what is no line."""
    match = _CRI.match(line)
    if match:
        return match.group(2), match.group(3) == b"P"
    document = _document(line)
    return (document[1], not document[0].endswith("\n")) if document is not None else (b"", False)


def _document(line: bytes) -> tuple[str, bytes, str] | None:
    """Return text, stream and time of a line of Docker's; None for others."""
    if not _DOCKER.match(line):
        return None
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return str(document["log"]), str(document.get("stream", "")).encode(), str(document.get("time", ""))


def _whole(pieces: list[bytes]) -> bytes:
    """Return pieces of one stream as one line, with the time of the first."""
    match = _CRI.match(pieces[0])
    if match:
        text = b"".join(_CRI.sub(b"", piece.rstrip(b"\r\n"), count=1) for piece in pieces)
        return b"%b %b F %b\n" % (match.group(1), match.group(2), text)
    documents = [document for document in map(_document, pieces) if document is not None]
    _, stream, time = documents[0]
    joined = {"log": "".join(text for text, _, _ in documents), "stream": stream.decode(), "time": time}
    return orjson.dumps(joined) + b"\n"
