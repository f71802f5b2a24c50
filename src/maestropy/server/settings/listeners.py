"""Settings of the listeners: REST, metrics, health, gRPC for sources, gRPC for agents.

One documented field per flag: unit, reason, and the meaning of absence. Values only; `load` builds and checks them.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from maestropy.flags import duration, flag


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """REST API"""

    hostname: str = field(default="localhost", metadata=flag("--server-hostname"))
    """Host or address that every listener binds to; IPv6 with or without brackets. Empty or `[::]`: all interfaces,
    IPv6 and IPv4, as needed in a container."""

    port: int = field(default=8000, metadata=flag("--http-server-bindport"))
    """TCP port of the REST API. 0 lets the system choose one."""

    enable_https: bool = field(default=False, metadata=flag("--enable-https"))
    """Serve REST over TLS. Off by default: in a cluster the service mesh usually terminates TLS."""

    cert_file: Path | None = field(default=None, metadata=flag("--https-cert-file"))
    """PEM certificate chain for HTTPS, shared by REST, metrics and health. Needed by any of them."""

    key_file: Path | None = field(default=None, metadata=flag("--https-key-file"))
    """PEM private key of --https-cert-file."""

    read_timeout: timedelta = field(default=timedelta(seconds=5), metadata=flag("--http-read-timeout"))
    """Time limit for a client to send a request; slower clients are disconnected."""

    write_timeout: timedelta = field(default=timedelta(seconds=30), metadata=flag("--http-write-timeout"))
    """Time limit for a client that reads nothing of a response; a slow reader gets all of it."""

    max_header_bytes: int = field(default=65536, metadata=flag("--http-max-header-bytes"))
    """Largest request line with headers, in bytes; longer ones get HTTP 431."""

    max_connections: int = field(default=1000, metadata=flag("--http-max-connections"))
    """Open connections of each of REST, metrics and health. Beyond that the oldest connection without a request is
    closed."""

    allowed_hosts: tuple[str, ...] = field(default=(), metadata=flag("--http-allowed-hosts"))
    """Names in the `Host` header that REST accepts, separated by commas; `*.example.com` accepts all below it, `*`
    accepts every name. Always accepted: IP addresses, names without a dot, `*.localhost`, `*.svc`,
    `*.cluster.local`, `<service>.<namespace of the pod>` and --server-hostname. The check stops DNS rebinding."""

    allowed_origins: tuple[str, ...] = field(default=(), metadata=flag("--http-cors-allowed-origins"))
    """Origins of web pages that may use REST from a browser (CORS), such as https://console.example, separated by
    commas; `*` for all. Absent: none."""

    enable_console: bool = field(default=False, metadata=flag("--enable-console"))
    """Serve the console at /console of the REST port, for clients with the role read; its operator actions need the
    role that they need in REST. It reads nothing while nobody looks; then it keeps a row of each work in memory, about
    one kilobyte."""

    https_is_given: bool = False
    """Whether the command line has --enable-https, with either value, as Maestro's charts do. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestAuthSettings:
    """REST authentication"""

    authn_type: Literal["none", "jwt"] = field(default="none", metadata=flag("--rest-authn-type"))
    """Authentication of REST clients. `none`: no authentication, as in Go Maestro; `jwt`: a signed bearer token."""

    jwks_file: Path | None = field(default=None, metadata=flag("--jwks-file"))
    """File with the public keys (JWKS) that sign tokens. Give this or --jwks-url."""

    jwks_url: str | None = field(default=None, metadata=flag("--jwks-url"))
    """URL of the JWKS. Give this or --jwks-file."""

    jwt_issuer: str | None = field(default=None, metadata=flag("--jwt-issuer"))
    """Required `iss` of a token. Absent: not checked."""

    jwt_audience: str | None = field(default=None, metadata=flag("--jwt-audience"))
    """Required `aud` of a token. Absent: not checked."""

    jwt_algorithms: tuple[str, ...] = field(default=("RS256",), metadata=flag("--jwt-algorithms"))
    """Accepted signature algorithms, separated by commas. Only public-key algorithms: RS, PS, ES and EdDSA."""

    role_claim: str = field(default="roles", metadata=flag("--jwt-role-claim"))
    """Claim with the roles of a client: a list, or a text with spaces between them. A dot leads into an object, as in
    `realm_access.roles`."""

    role_read: tuple[str, ...] = field(default=("maestro-read",), metadata=flag("--jwt-role-read"))
    """Values of --jwt-role-claim that allow to read: GET."""

    role_write: tuple[str, ...] = field(default=("maestro-write",), metadata=flag("--jwt-role-write"))
    """Values that also allow to create, label and resync consumers, and to delete and resend resource bundles."""

    role_admin: tuple[str, ...] = field(default=("maestro-admin",), metadata=flag("--jwt-role-admin"))
    """Values that allow everything: also to delete, pause, resume and retire consumers, to adopt a database (`maestro
    consumer adopt`), to sweep, and to delete the resource bundles of every source."""

    default_role: Literal["none", "read", "write", "admin"] = field(default="none", metadata=flag("--jwt-default-role"))
    """Role of a valid token without any of these values."""

    source_claim: str | None = field(default=None, metadata=flag("--jwt-source-claim"))
    """Claim with the sources that a client may see: lists, gets and deletes are limited to their resource bundles,
    and to the consumers that have some. A token without it sees none, `*` and admins see all. Absent: no limit."""

    insecure: bool = field(default=False, metadata=flag("--insecure-rest"))
    """Accept that unauthenticated clients of other hosts may use REST: all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """Metrics"""

    port: int = field(default=8080, metadata=flag("--metrics-server-bindport"))
    """TCP port of /metrics. 0 lets the system choose one."""

    enable_https: bool = field(default=False, metadata=flag("--enable-metrics-https"))
    """Serve metrics over TLS with --https-cert-file and --https-key-file."""

    label_inclusion: timedelta = field(
        default=timedelta(hours=168), metadata=flag("--label-metrics-inclusion-duration")
    )
    """Accepted for compatibility; it has no effect, as in Go Maestro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Health"""

    port: int = field(default=8083, metadata=flag("--health-check-server-bindport"))
    """TCP port of /healthcheck and /livez. 0 lets the system choose one."""

    enable_https: bool = field(default=False, metadata=flag("--enable-health-check-https"))
    """Serve health over TLS with --https-cert-file and --https-key-file."""

    heartbeat_interval: int = field(default=15, metadata=flag("--heartbeat-interval"))
    """Seconds between heartbeats of this instance; at least 1. After three missed heartbeats it counts as not ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcSettings:
    """gRPC for sources"""

    enabled: bool = field(default=True, metadata=flag("--enable-grpc-server"))
    """Serve the gRPC endpoint through which sources publish and subscribe."""

    port: int = field(default=8090, metadata=flag("--grpc-server-bindport"))
    """TCP port for sources. 0 lets the system choose one."""

    max_concurrent_streams: int = field(default=500, metadata=flag("--grpc-max-concurrent-streams"))
    """Calls and subscriptions of one connection at the same time; further ones wait in the client."""

    max_connections: int = field(default=10000, metadata=flag("--grpc-max-connections"))
    """Open connections of each gRPC port; further ones are closed. Near this number the oldest connections without an
    authenticated call are closed."""

    max_pending_connections: int = field(default=1000, metadata=flag("--grpc-max-pending-connections"))
    """Connections of one IP address without an authenticated call; beyond that the oldest are closed, as are those
    without one for 60 seconds or with 2 MiB of data. Connections with an authenticated call do not count."""

    max_subscriptions: int = field(default=10000, metadata=flag("--grpc-max-subscriptions"))
    """Open subscriptions of each gRPC port, about 30 KB of memory each; further ones are rejected."""

    max_subscriptions_per_client: int = field(default=2000, metadata=flag("--grpc-max-subscriptions-per-client"))
    """Open subscriptions of one user, or of one IP address where clients are not authenticated. Raise it if a proxy
    connects more agents than this."""

    max_receive_message_size: int = field(default=4194304, metadata=flag("--grpc-max-receive-message-size"))
    """Largest accepted message, in bytes, also after decompression; default 4 MiB."""

    max_send_message_size: int = field(default=2147483647, metadata=flag("--grpc-max-send-message-size"))
    """Largest message sent, in bytes."""

    connection_timeout: timedelta = field(default=timedelta(minutes=2), metadata=flag("--grpc-connection-timeout"))
    """Time limit for the handshake of a new connection."""

    max_connection_age: timedelta = field(default=duration.LONGEST, metadata=flag("--grpc-max-connection-age"))
    """Age at which a connection is closed, so that clients reconnect to new instances. Default: never."""

    client_min_ping_interval: timedelta = field(
        default=timedelta(seconds=5), metadata=flag("--grpc-client-min-ping-interval")
    )
    """Clients that ping more often are disconnected."""

    server_ping_interval: timedelta = field(default=timedelta(seconds=30), metadata=flag("--grpc-server-ping-interval"))
    """Silence after which the server pings a client."""

    server_ping_timeout: timedelta = field(default=timedelta(seconds=10), metadata=flag("--grpc-server-ping-timeout"))
    """Time limit for the response to a ping; then the connection is closed."""

    permit_ping_without_stream: bool = field(default=False, metadata=flag("--permit-ping-without-stream"))
    """Allow clients to ping without an open stream."""

    write_buffer_size: int = field(default=32768, metadata=flag("--grpc-write-buffer-size"))
    """Bytes collected before a write to the socket."""

    read_buffer_size: int = field(default=32768, metadata=flag("--grpc-read-buffer-size"))
    """Bytes read from the socket at once."""

    disable_tls: bool = field(default=False, metadata=flag("--disable-grpc-tls"))
    """Accept gRPC listeners without authentication, as --insecure-grpc and --insecure-grpc-broker do. Otherwise without
    effect: TLS is on if the certificate flags are given."""

    tls_cert_file: Path | None = field(default=None, metadata=flag("--grpc-tls-cert-file"))
    """PEM certificate chain for sources. Absent: no TLS and no authentication."""

    tls_key_file: Path | None = field(default=None, metadata=flag("--grpc-tls-key-file"))
    """PEM private key of --grpc-tls-cert-file."""

    client_ca_file: Path | None = field(default=None, metadata=flag("--grpc-client-ca-file"))
    """PEM file with the CAs of source certificates. Needed by --grpc-authn-type=mtls, and without effect for the other
    types: their clients are not asked for a certificate."""

    authn_type: Literal["mock", "mtls", "token"] = field(default="mock", metadata=flag("--grpc-authn-type"))
    """Authentication of sources. `mock`: none; `mtls`: client certificate; `token`: Kubernetes token."""

    authorizer_config: Path | None = field(default=None, metadata=flag("--grpc-authorizer-config"))
    """kubeconfig of the cluster that reviews tokens and access. Absent: the cluster of the pod."""

    heartbeat_check_interval: timedelta = field(
        default=timedelta(seconds=10), metadata=flag("--heartbeat-check-interval")
    )
    """Time between heartbeat events on every subscription of sources and agents."""

    heartbeat_disable: bool = field(default=False, metadata=flag("--heartbeat-disable"))
    """Send no heartbeat events, for clients that do not support them."""

    stream_recheck_interval: timedelta = field(
        default=timedelta(seconds=30), metadata=flag("--grpc-stream-recheck-interval")
    )
    """Time between checks of the token, permission and certificate of an open subscription; one that is revoked or
    expired ends it. 0s: never."""

    insecure: bool = field(default=False, metadata=flag("--insecure-grpc"))
    """Accept that unauthenticated sources of other hosts may publish and subscribe."""

    authn_type_is_given: bool = False
    """Whether the command line has --grpc-authn-type. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Agents and broker"""

    type: Literal["grpc", "mqtt", "pubsub"] = field(default="grpc", metadata=flag("--message-broker-type"))
    """How events reach agents. `grpc`: built in, the default; `mqtt`: an MQTT 5 broker, the default of the Go server;
    `pubsub`: Google Pub/Sub, which needs the extra `pubsub`."""

    config_file: Path = field(default=Path("secrets/mqtt.config"), metadata=flag("--message-broker-config-file"))
    """YAML or JSON file with address, credentials, topics and, for pubsub, subscriptions of the message broker.
    Not read for grpc."""

    disabled: bool = field(default=False, metadata=flag("--disable-message-broker", hidden=True))
    """Disable the delivery of events and the endpoint for agents."""

    mock: bool = field(default=False, metadata=flag("--enable-message-broker-mock"))
    """Not in this version: use `maestro up`, which runs a real agent."""

    port: int = field(default=8091, metadata=flag("--grpc-broker-bindport"))
    """TCP port for agents. 0 lets the system choose one."""

    tls_cert_file: Path | None = field(default=None, metadata=flag("--grpc-broker-tls-cert-file"))
    """PEM certificate chain for agents. Absent: no TLS."""

    tls_key_file: Path | None = field(default=None, metadata=flag("--grpc-broker-tls-key-file"))
    """PEM private key of --grpc-broker-tls-cert-file."""

    client_ca_file: Path | None = field(default=None, metadata=flag("--grpc-broker-client-ca-file"))
    """PEM file with the CAs of agent certificates. If given, agents must present a certificate."""

    agent_identity: Literal["exact", "suffix", "warn", "any"] | None = field(
        default=None, metadata=flag("--grpc-broker-agent-identity")
    )
    """`exact`, recommended: an agent may act only for the consumer that its certificate names; needs
    --grpc-broker-client-ca-file. `suffix`: also the common names `<consumer>-client`, `<consumer>-work-agent` and
    `<consumer>-work-agent-client`. `warn`: every agent may act for every consumer, as in the Go server; the log names
    each certificate that `exact` would reject. `any`: the same without that. Absent: warn with
    --grpc-broker-client-ca-file, any without it."""

    insecure: bool = field(default=False, metadata=flag("--insecure-grpc-broker"))
    """Accept that unauthenticated agents of other hosts may connect and act for every consumer."""

    type_is_given: bool = False
    """Whether the command line has --message-broker-type. No flag."""

    file_is_given: bool = False
    """Whether the command line has --message-broker-config-file. No flag."""
