"""Options of access to the systems that a trace reads, as values: for works, and for hosted control planes.

Light to import. Each value can write itself as flags of the command line, so that a report can print commands that
reach the same systems. Passwords are never among those flags.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from maestropy.trace.hcp.query import System

DatabaseAccess = Literal["auto", "maestro-db", "breakglass", "dsn", "rest", "none"]
API_VERSION = "2024-06-10-preview"
"""Of the resource provider: the oldest, which every frontend serves."""
DSN_VARIABLE = "MAESTRO_DB_DSN"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAccess:
    """How the database and the clusters of works are reached."""

    offline: Path | None = None
    """A directory of dumped rows, bundles and objects; no live system is read."""
    db: DatabaseAccess = "auto"
    """`auto`: the DSN, the REST API, or the pod of the service cluster, in this order."""
    db_dsn: str = ""
    """postgresql://user@host:5432/database."""
    db_pod: str = ""
    """The pod to run psql in; empty: the first ready one."""
    rest_url: str = ""
    """The REST API of a server."""
    rest_settings: Mapping[str, Any] = field(default_factory=dict)
    """Credentials for the REST API, as keyword arguments of the SDK's client."""
    svc_context: str = ""
    """The service cluster: a context."""
    svc_kubeconfig: str = ""
    """The service cluster: a kubeconfig file."""
    namespace: str = "maestro"
    """The server's namespace on the service cluster."""
    mgmt_contexts: tuple[str, ...] = ()
    """Management clusters: CONTEXT or CONSUMER=CONTEXT."""
    mgmt_kubeconfigs: tuple[str, ...] = ()
    """Management clusters: FILE or CONSUMER=FILE."""
    agent_namespace: str = "maestro-agent"
    """The agents' namespace on the management clusters."""
    no_cluster: bool = False
    """Do not read any management cluster."""
    timeout_seconds: float = 15.0
    """For a statement and for a request."""
    confirms_query: bool = False
    """Agree beforehand to the query on a critical database."""
    confirms_scaling: bool = False
    """Agree beforehand to scaling postgres-breakglass up, and back."""
    environment: str = ""
    """The environment of `maestro config` that completed these options; empty if none did."""
    flags_beside_environment: str = ""
    """The flags that were given in addition to the environment."""
    logs: str = ""
    """The folder with the log files of server and agents, if they run on this computer; advice then names them."""

    @property
    def flags(self) -> str:
        """The flags of `maestro trace work` that reach the same systems, quoted for a shell."""
        if self.environment:
            return f"{_flags([('--env', self.environment)])} {self.flags_beside_environment}".rstrip()
        if self.offline is not None:
            return _flags([("--offline", str(self.offline))])
        options = [("--db", self.db if self.db not in {"auto", "dsn"} else ""), ("--db-pod", self.db_pod)]
        options += [("--rest-url", self.rest_url), *self._cluster_options]
        flags = " ".join(filter(None, (_flags(options), "--no-cluster" if self.no_cluster else "")))
        if not self.db_dsn:
            return flags
        # The variable is expanded by the user's shell, so a password is not printed.
        dsn = f'"${DSN_VARIABLE}"' if _has_password(self.db_dsn) else shlex.quote(self.db_dsn)
        return f"--db-dsn {dsn} {flags}".strip()

    @property
    def _cluster_options(self) -> list[tuple[str, str]]:
        return [
            ("--svc-context", self.svc_context),
            ("--svc-kubeconfig", self.svc_kubeconfig),
            *(("--mgmt-context", context) for context in self.mgmt_contexts),
            *(("--mgmt-kubeconfig", file) for file in self.mgmt_kubeconfigs),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagementChoice:
    """A management cluster by kubeconfig and context, with its consumer if an environment names it."""

    consumer: str = ""
    kubeconfig: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HcpAccess:
    """How the systems of a hosted control plane are reached: documents, URLs and kubeconfigs."""

    offline: Path | None = None
    """A directory of saved documents; no live system is read."""
    urls: Mapping[System, str] = field(default_factory=dict)
    """The services that are reached directly."""
    svc_kubeconfig: str = ""
    svc_context: str = ""
    mgmt_kubeconfig: str = ""
    mgmt_context: str = ""
    mgmt_choices: tuple[ManagementChoice, ...] = ()
    """Management clusters of an environment; the consumer in the shard selects one."""
    api_version: str = API_VERSION
    timeout_seconds: float = 10.0
    environment: str = ""
    """The environment of `maestro config` that completed these options; empty if none did."""

    @property
    def source(self) -> str:
        """What a report calls it."""
        if self.offline is not None:
            return str(self.offline)
        parts = [f"{system.value} {url}" for system, url in self.urls.items()]
        parts += [f"service cluster {self.svc_context or self.svc_kubeconfig}"] if self.has_service else []
        named = self.mgmt_context or self.mgmt_kubeconfig
        parts += [f"management cluster {named}"] if named else []
        parts += [f"environment {self.environment}"] if self.environment else []
        return ", ".join(parts) or "nothing: no address and no kubeconfig was given"

    @property
    def has_service(self) -> bool:
        return bool(self.svc_kubeconfig or self.svc_context)

    @property
    def has_management(self) -> bool:
        return bool(self.mgmt_kubeconfig or self.mgmt_context or self.mgmt_choices)


def kubectl_flags(*, kubeconfig: str, context: str) -> str:
    """Return the flags that lead kubectl to a cluster, quoted for a shell."""
    return cluster_flags("", kubeconfig=kubeconfig, context=context)


def cluster_flags(prefix: str, *, kubeconfig: str, context: str) -> str:
    """Return the flags of a cluster, quoted for a shell; ours begin with `svc-` or `mgmt-`, kubectl's with nothing."""
    return _flags([(f"--{prefix}kubeconfig", kubeconfig), (f"--{prefix}context", context)])


def _flags(options: Iterable[tuple[str, str]]) -> str:
    return " ".join(f"{flag} {shlex.quote(value)}" for flag, value in options if value)


def _has_password(dsn: str) -> bool:
    parts = urlsplit(dsn)
    return bool(parts.password) or any(key == "password" for key, _ in parse_qsl(parts.query)) or "password=" in dsn
