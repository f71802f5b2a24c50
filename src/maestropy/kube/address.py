"""Values: where an API server is and who we are to it. Secrets are kept out of every repr."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pem:
    """Certificates or a key: given as such, or in a file that is read again when it changes."""

    data: bytes = field(default=b"", repr=False)
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials."""

    api_version: str
    command: str
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    cluster_info: Mapping[str, object] | None = field(default=None, repr=False)
    """What the program is told about the cluster, if it asks for it."""
    install_hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """How we prove who we are; all empty asks anonymously."""

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    client_certificate: Pem | None = None
    client_key: Pem | None = None
    plugin: ExecPlugin | None = None
    impersonation: tuple[tuple[str, str], ...] = ()
    """Headers that make us somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAddress:
    """Everything needed to reach one API server."""

    server: str
    """`https://host:port`, maybe with a path before the API's own; no slash at the end."""
    ca: Pem | None = None
    """Who vouches for the API server; None means the system's own authorities."""
    tls_server_name: str = ""
    skip_tls_verify: bool = False
    credentials: Credentials = Credentials()
    namespace: str = "default"
    """Where this context, or this pod, is at home."""
    origin: str = ""
    """The file and context it was read from, for error messages."""
