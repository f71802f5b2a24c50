"""Read a file or a stream that somebody else wrote, up to a limit.

A file that is too large is rejected by its size, before anything is read. Devices and pipes have no size; they are read
to the limit and no further.
"""

import os
from pathlib import Path
from typing import IO, Final

from maestropy.untrusted.errors import InputRejected

MIB: Final = 2**20
CONFIG_BYTES: Final = 2 * MIB
"""The limit of configuration files, kubeconfigs, tokens and certificates; they have kilobytes."""
MANIFEST_BYTES: Final = 8 * MIB
"""The limit of files with manifests, works, events and resources; a server accepts works of about 4 MiB."""


def read(path: Path, *, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise _too_large(str(path), most=most, size=size)
        return read_stream(stream, most=most, name=str(path))


def read_text(path: Path, *, most: int) -> str:
    """Return the UTF-8 text of a file of at most `most` bytes."""
    return read(path, most=most).decode("utf-8")


def read_stream(stream: IO[bytes], *, most: int, name: str) -> bytes:
    """Return the rest of a stream of at most `most` bytes; `name` is for the error."""
    content = stream.read(most + 1)
    if len(content) > most:
        raise _too_large(name, most=most)
    return content


def _too_large(name: str, *, most: int, size: int = 0) -> InputRejected:
    actual = f" ({size / MIB:.1f} MiB)" if size else ""
    return InputRejected(f"{name} is too large{actual}: the limit is {most / MIB:g} MiB")
