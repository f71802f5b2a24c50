"""Reject settings that cannot work together, before the server starts.

Each error names the flag and the remedy. Pure: files are not read here.
"""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from maestropy.flags import SettingsError
from maestropy.server.settings import console_login, open_listeners
from maestropy.server.settings.model import ServerSettings

# The keys in a JWKS are public, so only algorithms that verify with a public key make sense; with HS256 an attacker
# could sign a token with the published key itself.
PUBLIC_KEY_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)


MAX_WORKERS = 1024
"""Each is a process with database connections of its own: a larger number is a mistake in typing."""


MAX_SECONDS = 9_223_372_036
"""A duration in Go has at most this many whole seconds; Go servers read the delays that we store."""

MIN_READ_LAG = timedelta(milliseconds=100)
MAX_READ_WAIT = timedelta(seconds=10)
"""A client waits as long for its list, while the primary could answer."""

MAX_BATCH = 1000
"""All rows of a round stay locked until it ends, and status updates of their resources wait."""


def check(settings: ServerSettings) -> None:
    """Raise SettingsError for the first problem of `settings`."""
    for check_group in (_ports, _certificates, _authentication, _console_login, _numbers, _broker, _exposure):
        for problem in check_group(settings):
            raise SettingsError(problem)


def _ports(settings: ServerSettings) -> Iterator[str]:
    listeners = {
        "--http-server-bindport": settings.http.port,
        "--metrics-server-bindport": settings.metrics.port,
        "--health-check-server-bindport": settings.health.port,
    }
    if settings.grpc.enabled:
        listeners["--grpc-server-bindport"] = settings.grpc.port
    if settings.serves_agents:
        listeners["--grpc-broker-bindport"] = settings.broker.port
    taken: dict[int, str] = {}
    for flag, port in listeners.items():
        if not 0 <= port <= 65535:
            yield f"{flag}={port}: use a port from 1 to 65535, or 0 to let the system choose"
        if port and port in taken:
            yield f"{flag}={port} is also {taken[port]}; give one of them another port"
        if not port and settings.instance.shares_ports:
            yield f"{flag}=0 gives each worker another port; name a port, or use --workers=1"
        taken[port] = flag


def _certificates(settings: ServerSettings) -> Iterator[str]:
    http, grpc, broker = settings.http, settings.grpc, settings.broker
    yield from _pair("--https", http.cert_file, http.key_file)
    yield from _pair("--grpc-tls", grpc.tls_cert_file, grpc.tls_key_file)
    yield from _pair("--grpc-broker-tls", broker.tls_cert_file, broker.tls_key_file)
    switches = {
        "--enable-https": http.enable_https,
        "--enable-metrics-https": settings.metrics.enable_https,
        "--enable-health-check-https": settings.health.enable_https,
    }
    for flag, is_on in switches.items():
        if is_on and not http.cert_file:
            yield f"{flag} needs a certificate; give --https-cert-file and --https-key-file"
    if broker.client_ca_file and not broker.tls_cert_file:
        yield (
            "--grpc-broker-client-ca-file needs TLS; give --grpc-broker-tls-cert-file and --grpc-broker-tls-key-file"
        )


def _pair(prefix: str, cert: Path | None, key: Path | None) -> Iterator[str]:
    if bool(cert) != bool(key):
        present, missing = ("cert", "key") if cert else ("key", "cert")
        yield f"{prefix}-{present}-file needs {prefix}-{missing}-file; give both or neither"


def _authentication(settings: ServerSettings) -> Iterator[str]:
    grpc, rest = settings.grpc, settings.rest_auth
    if grpc.authn_type != "mock" and not grpc.tls_cert_file:
        # The Go server accepts all clients in this case, without a warning.
        yield (f"--grpc-authn-type={grpc.authn_type} needs TLS; give --grpc-tls-cert-file and --grpc-tls-key-file")
    if grpc.authn_type == "mtls" and not grpc.client_ca_file:
        yield "--grpc-authn-type=mtls needs --grpc-client-ca-file; give the authorities that sign the sources"
    identity = settings.broker.agent_identity
    if identity in ("exact", "suffix", "warn") and not settings.broker.client_ca_file:
        yield f"--grpc-broker-agent-identity={identity} needs --grpc-broker-client-ca-file; give it, or use any"
    if rest.authn_type == "jwt" and bool(rest.jwks_file) == bool(rest.jwks_url):
        yield "--rest-authn-type=jwt needs its keys; give --jwks-file or --jwks-url, not both"
    if rest.jwks_url and not rest.jwks_url.startswith(("https://", "http://")):
        yield f"--jwks-url={rest.jwks_url}: write an address that begins with https://"
    unsafe = [name for name in rest.jwt_algorithms if name not in PUBLIC_KEY_ALGORITHMS]
    if unsafe or not rest.jwt_algorithms:
        yield (
            f"--jwt-algorithms={','.join(rest.jwt_algorithms)}: use some of {', '.join(sorted(PUBLIC_KEY_ALGORITHMS))}"
        )


def _console_login(settings: ServerSettings) -> Iterator[str]:
    yield from console_login.problems(settings.console_login, http=settings.http, rest=settings.rest_auth)


def _numbers(settings: ServerSettings) -> Iterator[str]:
    grpc, delivery = settings.grpc, settings.delivery
    least: dict[str, tuple[float, float]] = {
        "--heartbeat-interval": (settings.health.heartbeat_interval, 1),
        "--undelivered-resource-threshold": (delivery.undelivered_threshold, 0),
        "--stale-delete-event-threshold": (delivery.stale_delete_threshold, 0),
        "--consistent-hash-partition-count": (delivery.partition_count, 1),
        "--consistent-hash-replication-factor": (delivery.replication_factor, 1),
        "--consistent-hash-load": (delivery.load, 1),
        "--grpc-max-concurrent-streams": (grpc.max_concurrent_streams, 1),
        "--http-max-header-bytes": (settings.http.max_header_bytes, 4096),
        "--http-max-connections": (settings.http.max_connections, 10),
        "--grpc-max-connections": (grpc.max_connections, 1),
        "--grpc-max-pending-connections": (grpc.max_pending_connections, 1),
        "--grpc-max-subscriptions": (grpc.max_subscriptions, 1),
        "--grpc-max-subscriptions-per-client": (grpc.max_subscriptions_per_client, 1),
        "--grpc-max-receive-message-size": (grpc.max_receive_message_size, 1),
        "--grpc-max-send-message-size": (grpc.max_send_message_size, 1),
        "--grpc-write-buffer-size": (grpc.write_buffer_size, 0),
        "--grpc-read-buffer-size": (grpc.read_buffer_size, 0),
        "--db-max-open-connections": (settings.database.max_open_connections, 2),
        "--db-read-max-open-connections": (settings.database.read_max_open_connections, 2),
        "--history-max-megabytes": (settings.history.max_megabytes, 16),
        "--workers": (settings.instance.workers, 1),
        "-v": (settings.log.verbosity, 0),
    }
    for flag, (value, lowest) in least.items():
        if not value >= lowest:
            yield f"{flag}={value}: use {lowest} or more"
    if settings.instance.workers > MAX_WORKERS:
        yield f"--workers={settings.instance.workers}: use {MAX_WORKERS} or less, about one a core"
    yield from _durations(settings)
    yield from _delete_recovery(settings)
    for flag, name in {
        "--source-id": settings.instance.source_id,
        "--client-id": settings.instance.client_id,
    }.items():
        if not name:
            yield f"{flag} is empty; give a name, or leave the flag out"


def _delete_recovery(settings: ServerSettings) -> Iterator[str]:
    delivery = settings.delivery
    interval, longest = delivery.delete_republish_interval, delivery.delete_republish_max_interval
    if not 0 <= interval <= MAX_SECONDS:
        yield f"--delete-event-republish-interval={interval} must be between 0 and {MAX_SECONDS} seconds; 0 is never"
    elif not max(1, interval) <= longest <= MAX_SECONDS:
        yield (
            f"--delete-event-republish-max-interval={longest} must be positive, fit a duration and be at least the "
            f"initial interval; use {max(1, interval)} to {MAX_SECONDS} seconds"
        )
    batch = delivery.delete_republish_batch_size
    if not 1 <= batch <= MAX_BATCH:
        yield f"--delete-event-republish-batch-size={batch} must be between 1 and {MAX_BATCH}"


def _durations(settings: ServerSettings) -> Iterator[str]:
    grpc, http = settings.grpc, settings.http
    positive = {
        "--http-read-timeout": http.read_timeout,
        "--http-write-timeout": http.write_timeout,
        "--grpc-connection-timeout": grpc.connection_timeout,
        "--grpc-max-connection-age": grpc.max_connection_age,
        "--grpc-client-min-ping-interval": grpc.client_min_ping_interval,
        "--grpc-server-ping-interval": grpc.server_ping_interval,
        "--grpc-server-ping-timeout": grpc.server_ping_timeout,
        "--heartbeat-check-interval": grpc.heartbeat_check_interval,
        "--sweep-interval": settings.delivery.sweep_interval,
    }
    if settings.database.read_max_lag < MIN_READ_LAG:
        yield "--db-read-max-lag is shorter than 100ms, which no check could tell; write a duration such as 5s"
    if not timedelta() <= settings.database.read_wait <= MAX_READ_WAIT:
        yield "--db-read-wait must be between 0s and 10s; write a duration such as 200ms"
    for flag, length in positive.items():
        if length <= timedelta():
            yield f"{flag} must be longer than nothing; write a duration such as 10s"
    if grpc.stream_recheck_interval < timedelta():
        yield "--grpc-stream-recheck-interval is negative; write 0s or a duration such as 30s"
    if settings.history.retention < timedelta(hours=1):
        yield "--history-retention must be an hour or more; to keep no history, use --enable-history=false"
    if settings.delivery.event_retention < timedelta():
        yield "--event-retention is negative; write 0s or a duration such as 24h"


def _broker(settings: ServerSettings) -> Iterator[str]:
    if settings.broker.mock:
        yield (
            "--enable-message-broker-mock is not in this version; "
            "use `maestro up`, which answers with a real agent on a small cluster"
        )


def _exposure(settings: ServerSettings) -> Iterator[str]:
    if problem := open_listeners.problem(settings):
        yield problem
