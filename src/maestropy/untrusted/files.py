"""Read a file or a stream that somebody else wrote, up to a limit.

A file that is too large is rejected by its size, before anything is read. Devices and pipes have no size; they are read
to the limit and no further. A named pipe is not opened: without a writer that would wait without end.
"""

import errno
import os
import stat
from pathlib import Path
from typing import IO, Final

from maestropy.untrusted.errors import InputRejected

MIB: Final = 2**20
CONFIG_BYTES: Final = 2 * MIB
"""The limit of configuration files, kubeconfigs, tokens and certificates; they have kilobytes."""
MANIFEST_BYTES: Final = 8 * MIB
"""The limit of files with manifests, works, events and resources; a server accepts works of about 4 MiB."""


class NotUtf8(UnicodeDecodeError):
    """The text of a file is not UTF-8."""

    def __str__(self) -> str:
        return f"it is not UTF-8 (byte {self.start}); save it as UTF-8"


def read(path: Path, *, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes."""
    # A pipe of the shell, as in `-f <(helm template .)`, has a writer; it is no file of a folder.
    if stat.S_ISFIFO(path.stat().st_mode) and path.resolve().exists():
        raise OSError(errno.EINVAL, "it is a named pipe, not a regular file", str(path))
    with path.open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > most:
            raise _too_large(str(path), most=most, size=size)
        return read_stream(stream, most=most, name=str(path))


def read_text(path: Path, *, most: int) -> str:
    """Return the UTF-8 text of a file of at most `most` bytes, without a byte order mark."""
    try:
        return read(path, most=most).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise NotUtf8(*error.args) from None


def read_stream(stream: IO[bytes], *, most: int, name: str) -> bytes:
    """Return the rest of a stream of at most `most` bytes; `name` is for the error."""
    content = stream.read(most + 1)
    if len(content) > most:
        raise _too_large(name, most=most)
    return content


def _too_large(name: str, *, most: int, size: int = 0) -> InputRejected:
    actual = f" ({size / MIB:.1f} MiB)" if size else ""
    return InputRejected(f"{name} is too large{actual}: the limit is {most / MIB:g} MiB")
