"""Values for the address and the credentials of an API server. Secrets are kept out of every repr."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """Certificates or a key: as data, or in a file that is read again when it changes."""

    data: bytes = field(default=b"", repr=False)
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """An exec plugin: a program that prints credentials."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cluster_info: Mapping[str, object] | None = field(default=None, repr=False)
    """The cluster information that the program gets, if it asks for it."""
    install_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Configured credentials; all empty: anonymous requests."""

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    client_certificate: Pem | None = None
    client_key: Pem | None = None
    plugin: ExecPlugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers of a configured impersonation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """Everything needed to reach one API server."""

    server: str
    """`https://host:port`, optionally with a path; without a slash at the end."""
    ca: Pem | None = None
    """CA of the API server; None: the CAs of the system."""
    tls_server_name: str = ""
    skip_tls_verify: bool = False
    credentials: Credentials = Credentials()
    namespace: str = "default"
    """The namespace of the context or of the pod."""
    origin: str = ""
    """The file and context it was read from, for error messages."""
