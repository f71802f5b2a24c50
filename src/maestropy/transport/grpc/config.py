"""Read the configuration file of the agent's gRPC connection: `--workload-source-config`.

YAML or JSON with the keys of the Go agent's gRPC driver. Certificate and token files are not opened here: every new
connection reads them, so that a rotated certificate needs no restart. Settings that the Go agent ignores silently are
ignored here, too, but reported in `notes`. No error quotes a value: any value may be a secret.

| case | result |
|---|---|
| unknown key | a note |
| only a certificate authority | TLS and a note: the Go agent connects without TLS then |
| serverHealthinessTimeout absent | 20s, to detect a dead server; `0s` means no timeout |
| token and tokenFile | the token is used, as by the Go agent |
"""

import re
from dataclasses import dataclass
from pathlib import Path

from maestropy.flags import SettingsError, document
from maestropy.transport.grpc.client import GrpcEndpoint
from maestropy.transport.tls import config_keys

# The server sends a heartbeat every ten seconds: two missed ones mean that it is dead.
HEARTBEAT_TIMEOUT_SECONDS = 20.0
_KEEPALIVE_SECONDS = 30.0
_KEEPALIVE_TIMEOUT_SECONDS = 10.0
_EXAMPLE = "url: host:port"
_KEYS = frozenset(
    {
        "url",
        "token",
        "tokenFile",
        "keepAliveConfig",
        "serverHealthinessTimeout",
        *config_keys.KEYS,
    }
)
_KEEPALIVE_KEYS = frozenset({"enable", "time", "timeout", "permitWithoutStream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConfig:
    """The gRPC endpoint of the server, and notes for the log."""

    endpoint: GrpcEndpoint
    notes: tuple[str, ...] = ()
    """Warnings for the operator, one sentence each."""


def plain(url: str, *, flag: str) -> GrpcConfig:
    """Return the endpoint of a server without TLS; `flag` set its address."""
    _check_url(url, origin=flag)
    return GrpcConfig(endpoint=GrpcEndpoint(url=url, heartbeat_timeout_seconds=HEARTBEAT_TIMEOUT_SECONDS))


def read(path: Path, *, flag: str) -> GrpcConfig:
    """Read the file; `flag` set its path."""
    return _config(document.read(path, flag=flag, example=_EXAMPLE))


def parse(content: bytes, *, origin: str) -> GrpcConfig:
    """Parse the content of a file; `origin` names the file in errors."""
    return _config(document.load(content, origin=origin, example=_EXAMPLE))


def _config(section: document.Section) -> GrpcConfig:
    origin = section.origin
    endpoint = _endpoint(section)
    _check(endpoint, origin=origin)
    notes = [f"{origin}: {name} is not a setting of the gRPC driver and is ignored" for name in section.unknown(_KEYS)]
    keepalive = section.section("keepAliveConfig")
    notes += [
        f"{origin}: keepAliveConfig.{name} is not known and is ignored" for name in keepalive.unknown(_KEEPALIVE_KEYS)
    ]
    if endpoint.has_ca and not (endpoint.has_client_cert or endpoint.token or endpoint.token_file):
        notes.append(
            f"{origin}: caFile without a token or client certificate means TLS here; leave it out for a server in "
            "plain text"
        )
    return GrpcConfig(endpoint=endpoint, notes=tuple(notes))


def _endpoint(section: document.Section) -> GrpcEndpoint:
    keepalive = section.section("keepAliveConfig")
    heartbeat_timeout = section.seconds("serverHealthinessTimeout", default=HEARTBEAT_TIMEOUT_SECONDS)
    token = section.text("token")
    return GrpcEndpoint(
        url=section.text("url"),
        **config_keys.read(section),
        token=token or None,
        token_file=None if token else section.path("tokenFile"),
        keepalive_seconds=keepalive.seconds("time", default=_KEEPALIVE_SECONDS) if keepalive.switch("enable") else None,
        keepalive_timeout_seconds=keepalive.seconds("timeout", default=_KEEPALIVE_TIMEOUT_SECONDS),
        keepalive_without_calls=keepalive.switch("permitWithoutStream"),
        heartbeat_timeout_seconds=heartbeat_timeout or None,
    )


def _check(endpoint: GrpcEndpoint, *, origin: str) -> None:
    # The text before each semicolon is the Go agent's: operators search for it.
    if not endpoint.url:
        raise SettingsError(f"{origin}: url is required; write host:port of the server's port for agents")
    _check_url(endpoint.url, origin=f"{origin}: url")
    config_keys.check(endpoint, origin=origin)
    if (endpoint.token or endpoint.token_file) and not endpoint.has_ca:
        raise SettingsError(
            f"{origin}: setting token requires authority certificates; add caFile or caData, those of the server"
        )


def _check_url(url: str, *, origin: str) -> None:
    # A URL scheme would be taken for a host name and only lead to name resolution errors.
    if url.lower().startswith(("http://", "https://", "grpc://", "grpcs://")) or url.split() != [url]:
        raise SettingsError(f"{origin} must be host:port, without a scheme and without blanks")
    port = re.search(r":(-?\d+)$", url, re.ASCII)
    if port and not 0 < int(port[1][:10]) <= 65535:
        raise SettingsError(f"{origin} must be host:port, with a port from 1 to 65535")
