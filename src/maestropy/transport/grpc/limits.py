"""Define the limits of one gRPC listener, as options of the gRPC library and as checks of the service.

Limits that apply before a client is authenticated are enforced here or by the library: messages are not read and not
decompressed before that.
"""

from dataclasses import dataclass

_MAX_PENDING = 5_000
"""Calls of few connections that wait at the same time."""
MAX_METADATA_BYTES = 32 * 1024
_SETTINGS_SECONDS = 10
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """The limits of one listener; most defaults are those of the Go Maestro, `docs/differences.md` lists the others."""

    max_receive_bytes: int = 4 * 2**20
    """Largest message, also after decompression."""
    max_send_bytes: int = 2**31 - 1
    max_concurrent_streams: int = 500
    """Calls of one connection at the same time."""
    max_connections: int = 10_000
    max_subscriptions: int = 10_000
    """Open subscriptions of all clients."""
    max_subscriptions_per_client: int = 2_000
    """Open subscriptions of one user, or of one address where clients are not authenticated."""
    read_seconds: float = 30.0
    """Timeout of the message of a call, from the end of the authentication."""
    max_connection_age_seconds: float | None = None
    client_min_ping_seconds: float = 5.0
    server_ping_seconds: float = 30.0
    server_ping_timeout_seconds: float = 10.0
    permit_ping_without_stream: bool = False
    handshake_seconds: float = 120.0
    """Timeout of the handshake of a new connection."""
    share_port: bool = False
    """Let other processes listen on the same port; off, so that an accidental second server fails."""

    def options(self) -> list[tuple[str, int]]:
        """Return these limits as options of the gRPC library."""
        options = [
            # The library limits the bytes on the wire. It must not decompress: that would happen before the message is
            # authenticated. `requests` does it later, up to the same limit.
            ("grpc.max_receive_message_length", self.max_receive_bytes),
            ("grpc.per_message_decompression", 0),
            ("grpc.max_send_message_length", self.max_send_bytes),
            ("grpc.max_concurrent_streams", min(self.max_concurrent_streams, 2**31 - 1)),
            # Otherwise a fast client gets windows of megabytes for streams that are not read yet. A stream that is read
            # gets a window of the size of its message anyway.
            ("grpc.http2.bdp_probe", 0),
            # Otherwise the library also counts calls that have ended and are not freed yet, and refuses some calls of a
            # client that keeps to the limit: 8 % of 3,000 calls at once.
            ("grpc.http.overload_protection", 0),
            ("grpc.max_allowed_incoming_connections", self.max_connections),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", round(self.client_min_ping_seconds * 1000)),
            ("grpc.http2.max_ping_strikes", 2),
            ("grpc.keepalive_time_ms", round(self.server_ping_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", round(self.server_ping_timeout_seconds * 1000)),
            ("grpc.keepalive_permit_without_calls", int(self.permit_ping_without_stream)),
            ("grpc.server_handshake_timeout_ms", round(self.handshake_seconds * 1000)),
            ("grpc.so_reuseport", int(self.share_port)),
            # Tokens of several KB must pass. The library enforces this once the client has acknowledged it, so a client
            # that does not is disconnected, by default after a minute. `connection_guard` limits what it sends before.
            ("grpc.max_metadata_size", MAX_METADATA_BYTES),
            ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
            ("grpc.http2.settings_timeout", _SETTINGS_SECONDS * 1000),
            # What was read is parsed even after the guard has ended the connection; by default that is up to 4 MiB.
            ("grpc.experimental.tcp_max_read_chunk_size", _READ_BYTES),
            # From the first number on the library cancels some calls before the service sees them, from the second on
            # all. Its defaults of 1000 and 3000 are too small for a fleet of agents that reconnects, each with a call.
            # The service rejects overload with a reason.
            ("grpc.server.max_pending_requests", max(_MAX_PENDING, self.max_connections)),
            ("grpc.server.max_pending_requests_hard_limit", 2 * max(_MAX_PENDING, self.max_connections)),
        ]
        if self.max_connection_age_seconds is not None:
            options.append(("grpc.max_connection_age_ms", round(self.max_connection_age_seconds * 1000)))
        return options
