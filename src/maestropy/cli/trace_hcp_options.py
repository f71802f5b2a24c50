"""The flags of `maestro trace hcp`: whom to ask, whom it is about, and what to do with the report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

_ENTRY = Group("Which HCP, in place of IDENTIFIER", sort_key=10)
_ACCESS = Group("Whom to ask", sort_key=20)
_OUTPUT = Group("The report", sort_key=30)
_SWITCH = Parameter(negative=())


@Parameter(name="*", group=_ENTRY, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class EntryOptions:
    """An HCP by the parts of its ARM resource ID."""

    subscription: str = ""
    """The Azure subscription."""
    group: str = ""
    """The resource group."""
    name: str = ""
    """The name of the HCP."""
    operation: str = ""
    """The id of an asynchronous operation whose status is to be read too."""


@Parameter(name="*", group=_ACCESS, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReachOptions:
    """Documents, addresses, or kubeconfigs; they may be mixed, except documents."""

    offline: Path | None = None
    """A directory of documents: any names, JSON, YAML or JSON lines, recognised by content. Nobody is asked."""
    at: str = ""
    """Judge ages as of this time (RFC 3339), for documents taken earlier. [when they were saved, or now]"""
    frontend_url: str = ""
    """The RP frontend, such as http://localhost:8443."""
    cs_url: str = ""
    """Clusters Service, such as http://localhost:8001."""
    maestro_url: str = ""
    """Maestro's REST API, such as http://localhost:8002."""
    svc_kubeconfig: str = ""
    """The service cluster: services without an address are reached by port-forwards through it."""
    svc_context: str = ""
    """Its context."""
    mgmt_kubeconfig: str = ""
    """Where the management clusters' contexts are; the shard says which one it is."""
    mgmt_context: str = ""
    """The management cluster's context, if you know better than the shard."""
    api_version: str = "2024-06-10-preview"
    """Of the resource provider. [2024-06-10-preview]"""
    timeout: float = 10.0
    """Seconds for each answer. [10]"""


@Parameter(name="*", group=_OUTPUT, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The report."""

    output: Annotated[
        Literal["text", "wide", "json", "yaml", "md", "html", "mermaid"], Parameter(name=("--output", "-o"))
    ] = "text"
    """Its form; wide shows the facts of all hops. [text]"""
    out: Path | None = None
    """Write it to a file."""
    save: Path | None = None
    """Keep all documents in this directory, without secrets, for --offline."""
    details: Annotated[tuple[str, ...], Parameter(negative=(), name=("--details", "-d"))] = ()
    """A hop whose facts are to be shown; may be repeated."""
    watch: Annotated[bool, _SWITCH] = False
    """Walk again and again, until everything is well or Ctrl-C."""
    interval: float = 5.0
    """Seconds between two walks of --watch. [5]"""
    exit_zero: Annotated[bool, _SWITCH] = False
    """End with 0 whatever was found."""
