"""The settings of everything that listens: REST, metrics, health, gRPC for sources, gRPC for agents.

One documented field per flag: unit, reason, and what absence means. Values only; `load` makes and checks them.
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
    """Host or address that every listener binds to. Empty means all interfaces; a container needs that."""

    port: int = field(default=8000, metadata=flag("--http-server-bindport"))
    """TCP port of the REST API. 0 lets the system choose one."""

    enable_https: bool = field(default=False, metadata=flag("--enable-https"))
    """Serve REST over TLS. Off by default: in a cluster the mesh usually ends TLS."""

    cert_file: Path | None = field(default=None, metadata=flag("--https-cert-file"))
    """PEM certificate chain for HTTPS, shared by REST, metrics and health. Needed by any of them."""

    key_file: Path | None = field(default=None, metadata=flag("--https-key-file"))
    """PEM private key of --https-cert-file."""

    read_timeout: timedelta = field(default=timedelta(seconds=5), metadata=flag("--http-read-timeout"))
    """How long a client may take to send a request, from its connection on; who takes longer is cut off."""

    write_timeout: timedelta = field(default=timedelta(seconds=30), metadata=flag("--http-write-timeout"))
    """How long a client may leave a response unread; who reads, however slowly, gets all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestAuthSettings:
    """REST authentication"""

    authn_type: Literal["none", "jwt"] = field(default="none", metadata=flag("--rest-authn-type"))
    """Who may call REST. `none` trusts the network, as Maestro always has; `jwt` wants a signed bearer token."""

    jwks_file: Path | None = field(default=None, metadata=flag("--jwks-file"))
    """File with the public keys (JWKS) that sign tokens. Give this or --jwks-url."""

    jwks_url: str | None = field(default=None, metadata=flag("--jwks-url"))
    """Address to fetch the JWKS from. Give this or --jwks-file."""

    jwt_issuer: str | None = field(default=None, metadata=flag("--jwt-issuer"))
    """The `iss` a token must carry. Absent: not checked."""

    jwt_audience: str | None = field(default=None, metadata=flag("--jwt-audience"))
    """The `aud` a token must carry. Absent: not checked."""

    jwt_algorithms: tuple[str, ...] = field(default=("RS256",), metadata=flag("--jwt-algorithms"))
    """Signature algorithms accepted, separated by commas. Only those with a public key: RS, PS, ES and EdDSA."""


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
    """Accepted because deployments pass it; it has no effect, here or in Maestro."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Health"""

    port: int = field(default=8083, metadata=flag("--health-check-server-bindport"))
    """TCP port of /healthcheck and /livez. 0 lets the system choose one."""

    enable_https: bool = field(default=False, metadata=flag("--enable-health-check-https"))
    """Serve health over TLS with --https-cert-file and --https-key-file."""

    heartbeat_interval: int = field(default=15, metadata=flag("--heartbeat-interval"))
    """Seconds between the heartbeats of this instance; at least 3. After three missed ones it counts as gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcSettings:
    """gRPC for sources"""

    enabled: bool = field(default=True, metadata=flag("--enable-grpc-server"))
    """Serve the gRPC endpoint through which sources publish and subscribe."""

    port: int = field(default=8090, metadata=flag("--grpc-server-bindport"))
    """TCP port for sources. 0 lets the system choose one."""

    max_concurrent_streams: int = field(default=4294967295, metadata=flag("--grpc-max-concurrent-streams"))
    """Streams per connection. The default sets no limit: a subscription is a stream that stays open."""

    max_receive_message_size: int = field(default=4194304, metadata=flag("--grpc-max-receive-message-size"))
    """Largest message taken, in bytes; 4 MiB."""

    max_send_message_size: int = field(default=2147483647, metadata=flag("--grpc-max-send-message-size"))
    """Largest message sent, in bytes."""

    connection_timeout: timedelta = field(default=timedelta(minutes=2), metadata=flag("--grpc-connection-timeout"))
    """How long a new connection may take until it can be used."""

    max_connection_age: timedelta = field(default=duration.LONGEST, metadata=flag("--grpc-max-connection-age"))
    """Age at which a connection is closed, so that clients spread over new instances. Default: never."""

    client_min_ping_interval: timedelta = field(
        default=timedelta(seconds=5), metadata=flag("--grpc-client-min-ping-interval")
    )
    """Clients that ping more often are disconnected."""

    server_ping_interval: timedelta = field(default=timedelta(seconds=30), metadata=flag("--grpc-server-ping-interval"))
    """Silence after which the server pings a client."""

    server_ping_timeout: timedelta = field(default=timedelta(seconds=10), metadata=flag("--grpc-server-ping-timeout"))
    """How long a ping may stay unanswered until the connection counts as dead."""

    permit_ping_without_stream: bool = field(default=False, metadata=flag("--permit-ping-without-stream"))
    """Let clients ping while they have no stream open."""

    write_buffer_size: int = field(default=32768, metadata=flag("--grpc-write-buffer-size"))
    """Bytes collected before a write to the socket."""

    read_buffer_size: int = field(default=32768, metadata=flag("--grpc-read-buffer-size"))
    """Bytes read from the socket at once."""

    disable_tls: bool = field(default=False, metadata=flag("--disable-grpc-tls"))
    """Deprecated and without effect: TLS is on exactly when the certificate flags are given."""

    tls_cert_file: Path | None = field(default=None, metadata=flag("--grpc-tls-cert-file"))
    """PEM certificate chain for sources. Absent: plain text, nobody is asked who they are."""

    tls_key_file: Path | None = field(default=None, metadata=flag("--grpc-tls-key-file"))
    """PEM private key of --grpc-tls-cert-file."""

    client_ca_file: Path | None = field(default=None, metadata=flag("--grpc-client-ca-file"))
    """PEM authorities that sign the certificates of sources. Needed by --grpc-authn-type=mtls."""

    authn_type: Literal["mock", "mtls", "token"] = field(default="mock", metadata=flag("--grpc-authn-type"))
    """How a source proves who it is: not at all, by certificate, or by a Kubernetes token."""

    authorizer_config: Path | None = field(default=None, metadata=flag("--grpc-authorizer-config"))
    """kubeconfig of the cluster that reviews tokens and access. Absent: the cluster this runs in."""

    heartbeat_check_interval: timedelta = field(
        default=timedelta(seconds=10), metadata=flag("--heartbeat-check-interval")
    )
    """Time between the heartbeat events on every subscription, for sources and for agents."""

    heartbeat_disable: bool = field(default=False, metadata=flag("--heartbeat-disable"))
    """Send no heartbeat events; for clients that do not know them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Agents and broker"""

    type: Literal["grpc", "mqtt", "pubsub"] = field(default="grpc", metadata=flag("--message-broker-type"))
    """How events reach agents. `grpc` is built in and needs nothing else, hence the default; the Go server's
    default is mqtt, an outside broker. pubsub is not in this version yet."""

    config_file: Path = field(default=Path("secrets/mqtt.config"), metadata=flag("--message-broker-config-file"))
    """YAML or JSON file with the address, the credentials and the topics of an outside broker. Not read for grpc."""

    disabled: bool = field(default=False, metadata=flag("--disable-message-broker", hidden=True))
    """Deliver nothing: no endpoint for agents, no delivery of events."""

    mock: bool = field(default=False, metadata=flag("--enable-message-broker-mock"))
    """Not in this version: `maestro up` gives clients a real agent to try against."""

    port: int = field(default=8091, metadata=flag("--grpc-broker-bindport"))
    """TCP port for agents. 0 lets the system choose one."""

    tls_cert_file: Path | None = field(default=None, metadata=flag("--grpc-broker-tls-cert-file"))
    """PEM certificate chain for agents. Absent: plain text."""

    tls_key_file: Path | None = field(default=None, metadata=flag("--grpc-broker-tls-key-file"))
    """PEM private key of --grpc-broker-tls-cert-file."""

    client_ca_file: Path | None = field(default=None, metadata=flag("--grpc-broker-client-ca-file"))
    """PEM authorities that sign the certificates of agents. Given: agents must show a certificate."""

    agent_identity: Literal["strict", "any"] | None = field(default=None, metadata=flag("--grpc-broker-agent-identity"))
    """`strict`: an agent may only speak for the cluster its certificate names; needs --grpc-broker-client-ca-file.
    `any`: every agent may speak for every cluster, as in the Go server, for certificates that name no cluster.
    Absent: strict with --grpc-broker-client-ca-file, any without it, since there is then nothing to compare."""
