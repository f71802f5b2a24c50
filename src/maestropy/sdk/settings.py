"""Where Maestro is and how to prove who we are: from arguments, or from the environment.

An argument wins over the environment; of several variables for one setting the first that is set counts. Every
complaint names the argument or variable that holds the mistake. Files are only named here; whoever uses one reads it,
and again when it changes.
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


class Options(TypedDict, total=False):
    """What a client can be told."""

    api_url: str
    grpc_url: str
    source: str
    token: str
    token_file: str | Path
    ca_file: str | Path
    api_ca_file: str | Path
    client_cert_file: str | Path
    client_key_file: str | Path
    insecure_skip_verify: bool
    timeout: float
    retry: RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a client knows."""

    api_url: str = ""
    """The REST endpoint, such as `https://maestro:8000`."""
    grpc_url: str = ""
    """`host:port` of the gRPC endpoint; without it there are no writes and no watches."""
    source: str = ""
    """Who we are among the sources of works; part of the identity of every work."""
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    """A bearer token, read again whenever it is used."""
    ca_file: Path | None = None
    """Whom to trust; absent means the system's authorities."""
    api_ca_file: Path | None = None
    """Whom to trust for REST, if that differs."""
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    insecure_skip_verify: bool = False
    """Trust any REST server. For trying things out."""
    timeout: float = 30.0
    """Seconds one request may take."""
    silence: float = 25.0
    """Seconds a watch may hear nothing; the server sends a heartbeat every ten."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @property
    def secret_files(self) -> tuple[Path, ...]:
        """The files that make a connection: when one changes, a new connection is due."""
        named = (self.ca_file, self.api_ca_file, self.client_cert_file, self.client_key_file)
        return tuple(path for path in named if path is not None)

    def current_token(self) -> str:
        """Return the token as it is now; empty without one."""
        if self.token_file is None:
            return self.token or ""
        try:
            return self.token_file.read_text().strip()
        except OSError as error:
            raise ConfigError(
                f"the token file {self.token_file} cannot be read: {error.strerror}", advice="check the path"
            ) from error

    def needs(self, name: str) -> str:
        """Return a setting that this call cannot do without."""
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
"""Which variables a setting is read from; the first that is set counts."""

_GRPC = re.compile(r"(?:(?:grpcs?|https?|dns)://+)?(\[[0-9a-fA-F:]+\]:\d{1,5}|[^/\s:]+:\d{1,5})/?")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def load(given: Options, environ: Mapping[str, str], *, called: Mapping[str, str] | None = None) -> Settings:
    """Return the settings, or say which one is wrong; `called` says under which names the caller was given some."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, variables in VARIABLES.items():
        found = next((variable for variable in variables if environ.get(variable)), None)
        if found is not None:
            values[name], origins[name] = environ[found], found
    for name, value in given.items():
        values[name], origins[name] = value, (called or {}).get(name, name)
    for name in given:
        if name not in _READERS:
            near = difflib.get_close_matches(name, _READERS, n=1)
            known = f"did you mean {near[0]}?" if near else f"use {', '.join(_READERS)}"
            raise ConfigError(f"{name} is no setting of a client", advice=known)
    if "token" in given and "token_file" not in given:
        values.pop("token_file", None)
    if "token_file" in given and "token" in given:
        raise ConfigError("token and token_file are both given", advice="give one of them")
    read = {name: _READERS[name](value, origins[name]) for name, value in values.items()}
    if ("client_cert_file" in read) != ("client_key_file" in read):
        origin = origins.get("client_cert_file") or origins["client_key_file"]
        raise ConfigError(f"{origin} is only half of a pair", advice="give the client certificate and its key")
    return Settings(**read)


def _api_url(value: object, origin: str) -> str:
    text = _text(value, origin).rstrip("/").removesuffix("/api/maestro/v1")
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_url = False
    if not is_url:
        raise ConfigError(f"{origin} is {text!r}, which is no address", advice="use http(s)://host:port")
    return text


def _grpc_url(value: object, origin: str) -> str:
    text = _text(value, origin)
    found = _GRPC.fullmatch(text)
    if found is None:
        raise ConfigError(f"{origin} is {text!r}, which is no address", advice="use host:port")
    return found[1]


def _text(value: object, origin: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{origin} must be a text that is not empty")
    return value.strip()


def _path(value: object, origin: str) -> Path:
    if isinstance(value, Path):
        return value
    return Path(_text(value, origin))


def _boolean(value: object, origin: str) -> bool:
    found = value if isinstance(value, bool) else _BOOLEANS.get(str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{origin} is {value!r}", advice="use true or false")
    return found


def _duration(value: object, origin: str) -> float:
    """Read seconds, or a duration as Go writes it."""
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
    "source": _text,
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
