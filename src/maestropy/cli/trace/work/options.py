"""The options of `maestro trace work`, grouped as `--help` shows them. Data only."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli.trace import seconds
from maestropy.trace.access.options import WorkAccess

ENTRY = Group("What you have (exactly one)", sort_key=1)
NARROW = Group("Narrowing", sort_key=2)
ACCESS = Group("Access", sort_key=3)
DEPTH = Group("Depth", sort_key=4)
OUTPUT = Group("Output", sort_key=5)

_SWITCH = Parameter(negative=())


@Parameter(name="*", group=ENTRY, show_default=False)
@dataclass(frozen=True, kw_only=True)
class WorkEntryOptions:
    """The identifier."""

    resource_id: str | None = None
    """The resource ID: the database's key and the CloudEvents' resourceid."""
    work_name: str | None = None
    """The name that the user gave the work."""
    manifest: str | None = None
    """A manifest: KIND[.group]/[NAMESPACE/]NAME."""
    manifest_kind: str | None = None
    """With --manifest-name: the kind of a manifest."""
    manifest_name: str | None = None
    """With --manifest-kind: its name."""
    manifest_namespace: str | None = None
    """With --manifest-kind: its namespace; without it all namespaces are searched."""
    applied_work: str | None = None
    """The name of an AppliedManifestWork."""
    label: str | None = None
    """A label of works, KEY=VALUE: all works that have it."""
    op_id: str | None = None
    """An operation id."""
    name_like: str | None = None
    """A part of a work's name: the newest ten."""
    file: Path | None = None
    """A file of resource IDs, one a line: all in one pass."""


@Parameter(name="*", group=NARROW, show_default=False)
@dataclass(frozen=True, kw_only=True)
class NarrowOptions:
    """Options that narrow a query to one of several works."""

    consumer: str = ""
    """Only works for this consumer."""
    source: str = ""
    """Only works of this source."""
    search_all: Annotated[bool, _SWITCH] = False
    """Search all works, up to --timeout; by default a search that no index helps ends after a part of a second."""


@Parameter(name="*", group=ACCESS, show_default=False)
@dataclass(frozen=True, kw_only=True)
class AccessOptions:
    """How the database and the clusters are reached."""

    env: str = ""
    """An environment of `maestro config`, used where no option is given. [the current one]"""
    config: Path | None = None
    """A file of environments instead of that of `maestro config`."""
    svc_context: str = ""
    """The service cluster: a context."""
    svc_kubeconfig: str = ""
    """The service cluster: a kubeconfig file."""
    mgmt_context: Annotated[list[str], _SWITCH] = field(default_factory=list)
    """A management cluster: a context, or CONSUMER=CONTEXT; repeat it for several."""
    mgmt_kubeconfig: Annotated[list[str], _SWITCH] = field(default_factory=list)
    """A management cluster: a kubeconfig file, or CONSUMER=FILE; repeat it for several."""
    namespace: str = "maestro"
    """The server's namespace. [maestro]"""
    agent_namespace: str = "maestro-agent"
    """The agents' namespace. [maestro-agent]"""
    db: Literal["auto", "maestro-db", "breakglass", "dsn", "rest", "none"] = "auto"
    """The database access. [auto: --db-dsn, --rest-url, or the pod of the service cluster]"""
    db_dsn: Annotated[str, Parameter(env_var="MAESTRO_DB_DSN", show_env_var=True)] = ""
    """postgresql://user@host:5432/database."""
    db_pod: str = ""
    """The pod to run psql in, if not the first ready one."""
    rest_url: str = ""
    """The REST API, http(s)://host:port; tokens and CA certificates come from the SDK's variables."""
    offline: Path | None = None
    """Read a directory of dumped rows, bundles and objects instead of live systems."""
    no_cluster: Annotated[bool, _SWITCH] = False
    """Do not read any management cluster."""
    timeout: float = 15.0
    """Seconds for a statement and for a request. [15]"""
    yes: Annotated[bool, _SWITCH] = False
    """Agree beforehand to the query on a critical database."""
    scale_up: Annotated[bool, _SWITCH] = False
    """Agree beforehand to scaling postgres-breakglass up, and back."""

    @property
    def access(self) -> WorkAccess:
        """The access that these flags name, without an environment."""
        return WorkAccess(
            offline=self.offline,
            db=self.db,
            db_dsn=self.db_dsn,
            db_pod=self.db_pod,
            rest_url=self.rest_url,
            svc_context=self.svc_context,
            svc_kubeconfig=self.svc_kubeconfig,
            namespace=self.namespace,
            mgmt_contexts=tuple(self.mgmt_context),
            mgmt_kubeconfigs=tuple(self.mgmt_kubeconfig),
            agent_namespace=self.agent_namespace,
            no_cluster=self.no_cluster,
            timeout_seconds=seconds.checked(self.timeout, option="--timeout"),
            confirms_query=self.yes,
            confirms_scaling=self.scale_up,
        )


@Parameter(name="*", group=DEPTH, show_default=False)
@dataclass(frozen=True, kw_only=True)
class DepthOptions:
    """How much to read."""

    live: bool | None = None
    """Read every object on the cluster. [yes, up to 100 works]"""
    nested: bool = True
    """Follow ManifestWorks within works, two levels down. [yes]"""
    diff: Annotated[bool, _SWITCH] = False
    """Compare live objects with their manifests, field by field."""
    feedback: Annotated[bool, _SWITCH] = False
    """Show what agents feed back of every object, also of works within works."""
    tree: Annotated[bool, _SWITCH] = False
    """Show the relation as a tree."""
    broker_host: str = ""
    """The agents' broker, HOST:PORT: checks the hub hash."""
    then_request: Path | None = None
    """Logs: continue with `maestro trace request` for the work."""
    check: Annotated[bool, _SWITCH] = False
    """Only check what a trace needs, and report how to get what is missing."""
    print_sql: Annotated[bool, _SWITCH] = False
    """Only print the SQL, to run it by hand."""


@Parameter(name="*", group=OUTPUT, show_default=False)
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The report."""

    output: Annotated[
        Literal["text", "wide", "json", "yaml", "md", "html", "mermaid"], Parameter(name=("--output", "-o"))
    ] = "text"
    """Its form. [text]"""
    out: Path | None = None
    """Write it to a file."""
    quiet: Annotated[bool, Parameter(name=("--quiet", "-q"), negative=())] = False
    """Only a line with the verdict for each work, if it is text, and no warnings."""
    tz: str = "UTC"
    """The time zone of texts: Europe/Berlin, local; JSON and YAML keep to UTC. [UTC]"""
    exit_zero: Annotated[bool, _SWITCH] = False
    """End with 0 whatever was found, for reporting jobs."""
