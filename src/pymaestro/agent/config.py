"""Read the file that says where the server is and how to prove who we are: `--workload-source-config`.

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

from pymaestro.agent.settings import HubSettings
from pymaestro.flags import SettingsError, document
from pymaestro.transport.grpc_client import Endpoint

# The server sends a heartbeat every ten seconds: two missed ones mean that it is gone.
SILENCE_SECONDS = 20.0
_KEEPALIVE_SECONDS = 30.0
_KEEPALIVE_TIMEOUT_SECONDS = 10.0
_KEYS = frozenset(
    {
        "url",
        "caFile",
        "caData",
        "clientCertFile",
        "clientCertData",
        "clientKeyFile",
        "clientKeyData",
        "token",
        "tokenFile",
        "keepAliveConfig",
        "serverHealthinessTimeout",
    }
)
_KEEPALIVE_KEYS = frozenset({"enable", "time", "timeout", "permitWithoutStream"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAddress:
    """The way to the server."""

    endpoint: Endpoint
    notes: tuple[str, ...] = ()
    """What an operator should know, one sentence each; for the log."""


def locate(hub: HubSettings) -> HubAddress:
    """Return the way to the server that the settings name."""
    if hub.grpc_url:
        _check_url(hub.grpc_url, origin="--grpc-url")
        return HubAddress(endpoint=Endpoint(url=hub.grpc_url, silence_seconds=SILENCE_SECONDS))
    if hub.config_file is None:
        raise SettingsError("where the server is is not known; give --workload-source-config or --grpc-url=host:port")
    origin = f"--workload-source-config={hub.config_file}"
    try:
        content = hub.config_file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{origin} cannot be read ({error.strerror}); give the path of the file") from error
    return parse(content, origin=origin)


def parse(content: bytes, *, origin: str) -> HubAddress:
    """Return the way that a file with this content describes; `origin` names the file in complaints."""
    section = document.load(content, origin=origin, example="url: host:port")
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
        ca_file=section.path("caFile"),
        ca_data=section.data("caData"),
        client_cert_file=section.path("clientCertFile"),
        client_cert_data=section.data("clientCertData"),
        client_key_file=section.path("clientKeyFile"),
        client_key_data=section.data("clientKeyData"),
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
    if endpoint.has_client_cert != endpoint.has_client_key:
        raise SettingsError(
            f"{origin}: either both or none of clientCertFile and clientKeyFile must be set; add the missing one"
        )
    if (endpoint.token or endpoint.token_file) and not endpoint.has_ca:
        raise SettingsError(
            f"{origin}: setting token requires authority certificates; add caFile or caData, those of the server"
        )


def _check_url(url: str, *, origin: str) -> None:
    # Taken for a host's name, a scheme would only ever lead to "cannot be resolved", for ever.
    if url.lower().startswith(("http://", "https://", "grpc://", "grpcs://")) or url.split() != [url]:
        raise SettingsError(f"{origin} must be host:port, without a scheme and without blanks")
