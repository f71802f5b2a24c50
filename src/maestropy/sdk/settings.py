"""Load the settings of a client, addresses and credentials, from arguments and environment variables.

An argument overrides the environment; of several variables for one setting the first that is set counts. Every error
names the argument or variable. Files are not read here; a connection reads them, and again when they change.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict
from urllib.parse import urlsplit

from maestropy.flags import duration
from maestropy.sdk.errors import ConfigError
from maestropy.sdk.retry import RetryPolicy
from maestropy.untrusted import addresses, tokens
from maestropy.untrusted.errors import InputRejected


class ClientOptions(TypedDict, total=False):
    """The options of a client; None means the environment, or the default."""

    api_url: str | None
    grpc_url: str | None
    source: str | None
    token: str | None
    token_file: str | Path | None
    ca_file: str | Path | None
    api_ca_file: str | Path | None
    client_cert_file: str | Path | None
    client_key_file: str | Path | None
    insecure_skip_verify: bool | None
    timeout: float | str | None
    retry: RetryPolicy | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a client."""

    api_url: str = ""
    """The address of the REST API, such as `https://maestro:8000`."""
    grpc_url: str = ""
    """`host:port` of the gRPC endpoint; without it there are no writes and no watches."""
    source: str = ""
    """The source ID; part of the identity of every work."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """A bearer token, read again whenever it is used."""
    ca_file: Path | None = None
    """The CA file; absent means the system's certificate authorities."""
    api_ca_file: Path | None = None
    """The CA file for REST, if it differs."""
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    insecure_skip_verify: bool = False
    """Do not verify the certificate of the REST server. For tests only."""
    timeout: float = 30.0
    """The timeout of one request in seconds."""
    heartbeat_timeout_seconds: float = 25.0
    """The timeout of a silent watch; the server sends a heartbeat every ten seconds."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def certificate_files(self) -> tuple[Path, ...]:
        """The certificate files of a connection: when one changes, a new connection is opened."""
        named = (self.ca_file, self.api_ca_file, self.client_cert_file, self.client_key_file)
        return tuple(path for path in named if path is not None)

    def current_token(self) -> str:
        """Return the current token; empty without one."""
        if self.token_file is None:
            return self.token or ""
        return read_token(self.token_file)

    def needs(self, name: str) -> str:
        """Return a required setting; raises ConfigError."""
        value = str(getattr(self, name))
        if not value:
            raise ConfigError(f"{name} is not set", advice=f"set {VARIABLES[name][0]} or give {name}=…")
        return value


VARIABLES: Mapping[str, tuple[str, ...]] = {
    "api_url": ("MAESTRO_API_URL", "MAESTRO_REST_URL", "HYPERFLEET_MAESTRO_HTTP_SERVER_ADDRESS", "MAESTRO_URL"),
    "grpc_url": ("MAESTRO_GRPC_URL", "MAESTRO_GRPC_SERVER_ADDRESS", "HYPERFLEET_MAESTRO_GRPC_SERVER_ADDRESS"),
    "source": ("MAESTRO_SOURCE_ID", "MAESTRO_GRPC_SOURCE_ID", "HYPERFLEET_MAESTRO_SOURCE_ID"),
    "token_file": ("MAESTRO_TOKEN_FILE", "MAESTRO_GRPC_TOKEN_FILE"),
    "ca_file": ("MAESTRO_CA_FILE", "MAESTRO_GRPC_CA_FILE", "HYPERFLEET_MAESTRO_CA_FILE"),
    "api_ca_file": ("MAESTRO_API_CA_FILE", "HYPERFLEET_MAESTRO_HTTP_CA_FILE"),
    "client_cert_file": ("MAESTRO_CLIENT_CERT_FILE", "MAESTRO_GRPC_CLIENT_CERT_FILE", "HYPERFLEET_MAESTRO_CERT_FILE"),
    "client_key_file": ("MAESTRO_CLIENT_KEY_FILE", "MAESTRO_GRPC_CLIENT_KEY_FILE", "HYPERFLEET_MAESTRO_KEY_FILE"),
    "insecure_skip_verify": ("MAESTRO_REST_INSECURE_SKIP_VERIFY",),
    "timeout": ("MAESTRO_REST_TIMEOUT", "HYPERFLEET_MAESTRO_TIMEOUT"),
}
"""The environment variables of each setting; the first that is set counts."""

_LARGEST_PORT = 65535
_WITHOUT_LOGIN = "keep a token in a file (token_file, --token-file, MAESTRO_TOKEN_FILE)"
_GRPC = re.compile(r"(?:(?:grpcs?|https?|dns)://+)?(\[[0-9a-fA-F:]+\]:\d{1,5}|[^/\s:]+:\d{1,5})/?")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def load(
    options: ClientOptions, environ: Mapping[str, str], *, origin_names: Mapping[str, str] | None = None
) -> Settings:
    """Return the settings; raises ConfigError. `origin_names` are the names that errors use for options."""
    set_options = {name: value for name, value in options.items() if value is not None}
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, variables in VARIABLES.items():
        set_variable = next((variable for variable in variables if environ.get(variable)), None)
        if set_variable is not None:
            values[name], origins[name] = environ[set_variable], set_variable
    for name, value in set_options.items():
        values[name], origins[name] = value, (origin_names or {}).get(name, name)
    for name in options:
        if name not in _READERS:
            near = difflib.get_close_matches(name, _READERS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"use {', '.join(_READERS)}"
            raise ConfigError(f"{name} is not a setting of a client", advice=advice)
    if "token" in set_options and "token_file" not in set_options:
        values.pop("token_file", None)
    if "token_file" in set_options and "token" in set_options:
        raise ConfigError("token and token_file are both given", advice="give one of them")
    read = {name: _READERS[name](value, origins[name]) for name, value in values.items()}
    if ("client_cert_file" in read) != ("client_key_file" in read):
        origin = origins.get("client_cert_file") or origins["client_key_file"]
        raise ConfigError(f"{origin} needs its counterpart", advice="give the client certificate and its key")
    return Settings(**read)


def read_token(path: Path) -> str:
    """Return the bearer token of a file; raises ConfigError that names the file, never the token."""
    try:
        return tokens.read(path)
    except InputRejected as error:
        raise ConfigError(str(error)) from None


def reject_login(url: str, *, origin: str, advice: str = _WITHOUT_LOGIN) -> None:
    """Raise ConfigError, which does not quote it, for an address with a user or password."""
    if addresses.has_login(url):
        raise ConfigError(f"{origin} contains a user or password", advice=advice)


def _api_url(value: object, origin: str) -> str:
    text = _text(value, origin).rstrip("/").removesuffix("/api/maestro/v1")
    reject_login(text, origin=origin)
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigError(f"{origin} is {text!r}, which is not an address", advice="use http(s)://host:port")
    return text


def _grpc_url(value: object, origin: str) -> str:
    text = _text(value, origin)
    reject_login(text, origin=origin)
    match = _GRPC.fullmatch(text)
    if match is None:
        raise ConfigError(f"{origin} is {text!r}, which is not an address", advice="use host:port")
    port = int(match[1].rpartition(":")[2])
    if not 0 < port <= _LARGEST_PORT:
        raise ConfigError(f"{origin} is {text!r}", advice=f"use a port from 1 to {_LARGEST_PORT}")
    return match[1]


def _text(value: object, origin: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{origin} must be a string that is not empty")
    return value.strip()


def _source(value: object, origin: str) -> str:
    text = _text(value, origin)
    if not text.isprintable() or " " in text:
        raise ConfigError(f"{origin} is {text!r}", advice="use a name without spaces and control characters")
    return text


def _path(value: object, origin: str) -> Path:
    if isinstance(value, Path):
        return value
    return Path(_text(value, origin))


def _boolean(value: object, origin: str) -> bool:
    boolean = value if isinstance(value, bool) else _BOOLEANS.get(str(value).strip().lower())
    if boolean is None:
        raise ConfigError(f"{origin} is {value!r}", advice="use true or false")
    return boolean


def _duration(value: object, origin: str) -> float:
    """Parse seconds, or a duration in Go's form."""
    try:
        seconds = duration.seconds(str(value))
    except ValueError as error:
        raise ConfigError(f"{origin} is {value!r}", advice="use seconds, or a duration such as 30s") from error
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"{origin} is {value!r}", advice="use more than 0 seconds")
    return seconds


def _policy(value: object, origin: str) -> RetryPolicy:
    if not isinstance(value, RetryPolicy):
        raise ConfigError(f"{origin} must be a RetryPolicy")
    return value


_READERS: Mapping[str, Any] = {
    "api_url": _api_url,
    "grpc_url": _grpc_url,
    "source": _source,
    "token": _text,
    "token_file": _path,
    "ca_file": _path,
    "api_ca_file": _path,
    "client_cert_file": _path,
    "client_key_file": _path,
    "insecure_skip_verify": _boolean,
    "timeout": _duration,
    "retry": _policy,
}
