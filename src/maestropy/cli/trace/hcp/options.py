"""The flags of `maestro trace hcp`: which HCP, how to reach its systems, and how to report."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli.trace import seconds
from maestropy.trace.access.options import HcpAccess
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.hcp.query import System
from maestropy.untrusted import addresses

_ENTRY = Group("Which HCP, in place of IDENTIFIER", sort_key=10)
_ACCESS = Group("Access", sort_key=20)
_OUTPUT = Group("The report", sort_key=30)
_SWITCH = Parameter(negative=())


@Parameter(name="*", group=_ENTRY, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class HcpEntryOptions:
    """An HCP by the parts of its ARM resource ID."""

    subscription: str = ""
    """The Azure subscription."""
    group: str = ""
    """The resource group."""
    name: str = ""
    """The name of the HCP."""
    operation: str = ""
    """The ID of an asynchronous operation whose status is read too."""


@Parameter(name="*", group=_ACCESS, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class HcpAccessOptions:
    """Documents, addresses, or kubeconfigs; they may be mixed, except documents."""

    env: str = ""
    """An environment of `maestro config`, used where no option is given. [the current one]"""
    config: Path | None = None
    """A file of environments instead of that of `maestro config`."""
    offline: Path | None = None
    """A directory of documents: any names, JSON, YAML or JSON lines, recognised by content. No system is queried."""
    at: str = ""
    """Compute ages as of this time (RFC 3339), for documents saved earlier. [when they were saved, or now]"""
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
    """The kubeconfig with the contexts of management clusters; the shard names the right one."""
    mgmt_context: str = ""
    """The management cluster's context, if you know better than the shard."""
    api_version: str = "2024-06-10-preview"
    """Of the resource provider. [2024-06-10-preview]"""
    timeout: float = 10.0
    """Timeout of each request in seconds. [10]"""

    @property
    def access(self) -> HcpAccess:
        """The access that these flags name, without an environment."""
        urls = {
            System.FRONTEND: self.frontend_url,
            System.CLUSTERS_SERVICE: self.cs_url,
            System.MAESTRO: self.maestro_url,
        }
        return HcpAccess(
            offline=self.offline,
            urls={system: _url(url) for system, url in urls.items() if url},
            svc_kubeconfig=self.svc_kubeconfig,
            svc_context=self.svc_context,
            mgmt_kubeconfig=self.mgmt_kubeconfig,
            mgmt_context=self.mgmt_context,
            api_version=self.api_version,
            timeout_seconds=seconds.checked(self.timeout, option="--timeout"),
        )


def _url(url: str) -> str:
    if addresses.has_login(url):
        raise InvalidArguments("an address contains a user or password; leave it out: reports show addresses")
    if not url.startswith(("http://", "https://")):
        raise InvalidArguments(f"{url!r} is not an address; write it as http://host:port")
    return url


@Parameter(name="*", group=_OUTPUT, show_default=False)
@dataclass(frozen=True, slots=True, kw_only=True)
class HcpReportOptions:
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
    """A hop whose facts are shown; may be repeated."""
    watch: Annotated[bool, _SWITCH] = False
    """Walk again and again, until everything is well or Ctrl-C."""
    interval: float = 5.0
    """Seconds between two walks of --watch. [5]"""
    exit_zero: Annotated[bool, _SWITCH] = False
    """End with 0 whatever was found."""
