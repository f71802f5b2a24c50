"""Read the file that says where the server's port for agents is: `--workload-source-config`.

YAML or JSON with the keys of the Go agent's gRPC driver. Files that it names are not opened here: the connection reads
them, again whenever it is made anew, so that a rotated certificate needs no restart. What the Go agent passes over in
silence is passed over here too, but told in `notes`. No complaint quotes a value: any of them may be a secret.

| case | verdict |
|---|---|
| a key nobody knows | a note |
| a certificate authority alone | TLS and a note: the Go agent speaks plain text then |
| serverHealthinessTimeout absent | 20s: a server that went away is noticed; `0s` waits for ever |
| token and tokenFile | the token, as the Go agent |
"""

from dataclasses import dataclass
from pathlib import Path

from maestropy.flags import SettingsError, document
from maestropy.transport import certificate_keys
from maestropy.transport.grpc_client import Endpoint

# The server sends a heartbeat every ten seconds: two missed ones mean that it is gone.
SILENCE_SECONDS = 20.0
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
        *certificate_keys.KEYS,
    }
)
_KEEPALIVE_KEYS = frozenset({"enable", "time", "timeout", "permitWithoutStream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAddress:
    """The way to the server."""

    endpoint: Endpoint
    notes: tuple[str, ...] = ()
    """What an operator should know, one sentence each; for the log."""


def plain(url: str, *, flag: str) -> HubAddress:
    """Return the way to a server in plain text; `flag` is what named it."""
    _check_url(url, origin=flag)
    return HubAddress(endpoint=Endpoint(url=url, silence_seconds=SILENCE_SECONDS))


def read(path: Path, *, flag: str) -> HubAddress:
    """Return the way that the file describes; `flag` is what named it."""
    return _hub_address(document.read(path, flag=flag, example=_EXAMPLE))


def parse(content: bytes, *, origin: str) -> HubAddress:
    """Return the way that a file with this content describes; `origin` names the file in complaints."""
    return _hub_address(document.load(content, origin=origin, example=_EXAMPLE))


def _hub_address(section: document.Section) -> HubAddress:
    origin = section.origin
    endpoint = _endpoint(section)
    _check(endpoint, origin=origin)
    notes = [f"{origin}: {name} is not a setting of the gRPC driver and is ignored" for name in section.unknown(_KEYS)]
    alive = section.section("keepAliveConfig")
    notes += [
        f"{origin}: keepAliveConfig.{name} is not known and is ignored" for name in alive.unknown(_KEEPALIVE_KEYS)
    ]
    if endpoint.has_ca and not (endpoint.has_client_cert or endpoint.token or endpoint.token_file):
        notes.append(
            f"{origin}: caFile without a token or client certificate means TLS here; leave it out for a server in "
            "plain text"
        )
    return HubAddress(endpoint=endpoint, notes=tuple(notes))


def _endpoint(section: document.Section) -> Endpoint:
    alive = section.section("keepAliveConfig")
    silence = section.seconds("serverHealthinessTimeout", default=SILENCE_SECONDS)
    token = section.text("token")
    return Endpoint(
        url=section.text("url"),
        **certificate_keys.read(section),
        token=token or None,
        token_file=None if token else section.path("tokenFile"),
        keepalive_seconds=alive.seconds("time", default=_KEEPALIVE_SECONDS) if alive.switch("enable") else None,
        keepalive_timeout_seconds=alive.seconds("timeout", default=_KEEPALIVE_TIMEOUT_SECONDS),
        keepalive_without_calls=alive.switch("permitWithoutStream"),
        silence_seconds=silence or None,
    )


def _check(endpoint: Endpoint, *, origin: str) -> None:
    # The words before each semicolon are the Go agent's: people search for them.
    if not endpoint.url:
        raise SettingsError(f"{origin}: url is required; write host:port of the server's port for agents")
    _check_url(endpoint.url, origin=f"{origin}: url")
    certificate_keys.check(endpoint, origin=origin)
    if (endpoint.token or endpoint.token_file) and not endpoint.has_ca:
        raise SettingsError(
            f"{origin}: setting token requires authority certificates; add caFile or caData, those of the server"
        )


def _check_url(url: str, *, origin: str) -> None:
    # Taken for a host's name, a scheme would only ever lead to "cannot be resolved", for ever.
    if url.lower().startswith(("http://", "https://", "grpc://", "grpcs://")) or url.split() != [url]:
        raise SettingsError(f"{origin} must be host:port, without a scheme and without blanks")
