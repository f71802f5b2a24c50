"""Trace works, requests and hosted clusters from databases, clusters and logs. Writes only after confirmation.

    from maestropy import trace

    for request in trace.requests(["./maestro-logs"]):
        print(request.key.work_name, request.verdict, request.failed_stage, request.main_finding)
    report = trace.work(work_name="nginx-work", access=trace.WorkAccess(offline=Path("dump")))
    walk = trace.hcp("2ppsfca8u7368uin9koq9aq1b183mqke", access=trace.HcpAccess(offline=Path("documents")))

`maestropy.trace.library` has the same functions for programs with an event loop. Importing this package is cheap: what
reads databases and clusters is imported when a function is called. The functions `work` and `hcp` have the names of the
packages that do the work; `from maestropy.trace.work import …` still imports from the package.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Loaded before the functions below take their names; loading a package later would replace the function.
import maestropy.trace.hcp
import maestropy.trace.work  # noqa: F401

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from maestropy.trace.access.options import HcpAccess as HcpAccess
    from maestropy.trace.access.options import WorkAccess as WorkAccess
    from maestropy.trace.errors import Ambiguous as Ambiguous
    from maestropy.trace.errors import InputUnreadable as InputUnreadable
    from maestropy.trace.errors import InvalidArguments as InvalidArguments
    from maestropy.trace.errors import NotFound as NotFound
    from maestropy.trace.errors import TraceError as TraceError
    from maestropy.trace.hcp.model import Walk as Walk
    from maestropy.trace.logs.model import Options as Options
    from maestropy.trace.logs.model import RequestVerdict as RequestVerdict
    from maestropy.trace.logs.model import Trace as Trace
    from maestropy.trace.logs.tracing import request as request
    from maestropy.trace.logs.tracing import requests as requests
    from maestropy.trace.work.query import WorkIdentifier as WorkIdentifier
    from maestropy.trace.work.query import WorkTraceOptions as WorkTraceOptions
    from maestropy.trace.work.report.work_report import WorkReport as WorkReport

_PUBLIC = {
    "access.options": ("HcpAccess", "WorkAccess"),
    "errors": ("Ambiguous", "InputUnreadable", "InvalidArguments", "NotFound", "TraceError"),
    "hcp.model": ("Walk",),
    "logs.model": ("Options", "RequestVerdict", "Trace"),
    "logs.tracing": ("request", "requests"),
    "work.query": ("WorkIdentifier", "WorkTraceOptions"),
    "work.report.work_report": ("WorkReport",),
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public class when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def work(
    *, access: "WorkAccess", options: "WorkTraceOptions | None" = None, **identifier: "Unpack[WorkIdentifier]"
) -> "WorkReport":
    """Trace a work from one of its identifiers, and judge it.

    Args:
        access: How the database and the clusters are reached, or a directory of dumps.
        options: How much is read.
        **identifier: One of `resource_id`, `work_name`, `manifest`, `applied_work`, `label`, `op_id`, `name_like` and
            `resource_ids`; `consumer` and `source` narrow it.

    Raises:
        InvalidArguments: not exactly one identifier is given, or one that Maestro cannot store.
        InputUnreadable: the directory cannot be read.
        Declined: a critical database needs a confirmation that the access options do not contain.

    A system that cannot be read is no error: the report names it, and its verdict says what is unknown.
    """
    import asyncio  # noqa: PLC0415 - heavy, see above

    from maestropy.trace import library  # noqa: PLC0415

    return asyncio.run(library.work(access=access, options=options, **identifier))


def hcp(identifier: str, *, access: "HcpAccess", at: "datetime | None" = None, operation: str = "") -> "Walk":
    """Trace a hosted control plane from any of its identifiers to the hop that blocks it.

    Args:
        identifier: ARM resource ID, Clusters Service id or href, bundle id, namespace, or HostedCluster NAMESPACE/NAME.
        access: How the systems are reached, or a directory of saved documents.
        at: The time that ages are computed for; by default when the documents were saved, or now.
        operation: The ID of an asynchronous operation whose status is read too.

    Raises:
        InvalidArguments: the identifier is of no known form.
        InputUnreadable: the directory holds no document of a hosted control plane.

    A system that cannot be reached is no error: its hops are unknown, with the reason.
    """
    import asyncio  # noqa: PLC0415 - heavy, see above

    from maestropy.trace import library  # noqa: PLC0415

    return asyncio.run(library.hcp(identifier, access=access, at=at, operation=operation))
