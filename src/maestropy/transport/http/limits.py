"""Define the limits of one HTTP listener."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """Limits of an HTTP listener and of each of its connections; durations in seconds."""

    read_seconds: float = 5.0
    """From the connection, or the first byte of a later request, to the last byte of the request."""
    write_seconds: float = 30.0
    """Within which a client must read from a full send buffer."""
    idle_seconds: float = 75.0
    """Between two requests of a connection."""
    handshake_seconds: float = 10.0
    """For the TLS handshake of a connection."""
    header_bytes: int = 64 * 1024
    """Of the request line and the headers together."""
    headers: int = 256
    """Header fields of a request."""
    pipelined: int = 16
    """Requests that a client may send before it has the response to the first one."""
    connections: int = 1_000
    """Open connections; beyond that the oldest one without a request is closed, else the new one."""
