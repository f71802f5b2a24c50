"""The base of streams that make their bytes of those of another one."""

import io
from typing import IO, cast


class RawStream(io.RawIOBase):
    """A stream of the bytes that `next_bytes` returns; none end it."""

    def next_bytes(self, length: int) -> bytes:
        """Return up to so many bytes."""
        raise NotImplementedError

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # Python 3.11 has no name for buffers
        data = self.next_bytes(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def buffered(self) -> IO[bytes]:
        """Return it as others read it."""
        return cast("IO[bytes]", io.BufferedReader(self))
