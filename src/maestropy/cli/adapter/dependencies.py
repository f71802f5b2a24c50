"""Open the connections of an adapter from flags and environment: a transport, a target, the HyperFleet API."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli.errors import UsageError
from maestropy.flags import duration

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.resource import Resource
    from maestropy.adapter.transports.performer import LivePerformer, WorkTransport

_GROUP = Group("Connections", sort_key=80)
_LARGEST_PORT = 65535

DRAIN_SECONDS = 15.0
"""For the events in progress of a service after SIGTERM."""
STOP_SECONDS = 25.0
"""For everything after SIGTERM; Kubernetes kills a pod after 30 seconds."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFlags:
    """Flags for the transport; the address of Maestro comes from MAESTRO_API_URL and MAESTRO_GRPC_URL."""

    event_timeout: Annotated[
        str, Parameter(group=_GROUP, help="The time limit of one event, in addition to --wait.")
    ] = "2m"
    transport: Annotated[Literal["maestro", "kubernetes"], Parameter(group=_GROUP, help="The transport for works.")] = (
        "maestro"
    )
    consumer: Annotated[
        str | None,
        Parameter(group=_GROUP, help="The consumer of new works (MANAGEMENT_CLUSTER_CONSUMER).", show_default=False),
    ] = None
    kubeconfig: Annotated[
        str, Parameter(group=_GROUP, help="The cluster of --transport kubernetes.", show_default=False)
    ] = ""
    namespace: Annotated[
        str,
        Parameter(group=_GROUP, help="The namespace for the ConfigMaps of --transport kubernetes.", show_default=False),
    ] = ""


@asynccontextmanager
async def opened(
    adapter: "Adapter", flags: ConnectionFlags, *, resource: "Resource | None" = None
) -> "AsyncIterator[LivePerformer]":
    """Open all connections; they are closed at the end."""
    from maestropy.adapter.transports import hyperfleet_api
    from maestropy.adapter.transports.performer import LivePerformer
    from maestropy.adapter.transports.resource_api import ConfiguredResourceApi
    from maestropy.sdk import targeting

    async with AsyncExitStack() as stack:
        settings = hyperfleet_api.from_environment(os.environ)
        api = await stack.enter_async_context(hyperfleet_api.HyperFleetClient(settings)) if settings else None
        transport = await _transport(stack, adapter, flags)
        target = adapter.target or targeting.from_environment()
        if flags.consumer:
            target = targeting.static(flags.consumer)
        elif flags.transport == "kubernetes":
            target = targeting.static("kubernetes")
        yield LivePerformer(
            transport=transport, resource_api=ConfiguredResourceApi(api=api, resource=resource), target=target
        )


async def _transport(stack: AsyncExitStack, adapter: "Adapter", flags: ConnectionFlags) -> "WorkTransport":
    if flags.transport == "kubernetes":
        from maestropy.adapter.transports import kubernetes

        opening = kubernetes.opened(flags.kubeconfig, namespace=flags.namespace, environ=os.environ)
        return await stack.enter_async_context(opening)
    from maestropy.adapter.transports.maestro import ADAPTER_RETRY, MaestroTransport
    from maestropy.sdk.client import AsyncMaestro

    client = AsyncMaestro(environ=_with_source(os.environ, adapter.name), retry=ADAPTER_RETRY)
    await stack.enter_async_context(client)
    return MaestroTransport(client)


def _with_source(environ: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the environment with the adapter's name as source ID, unless it sets another."""
    from maestropy.sdk.settings import VARIABLES

    is_set = any(environ.get(variable) for variable in VARIABLES["source"])
    return dict(environ) if is_set else {**environ, VARIABLES["source"][0]: name}


def loaded(reference: str, *, verbose: bool) -> "Adapter":
    """Import and return an adapter; if `verbose`, the traceback of a failure is written to standard error."""
    from maestropy.adapter import standard_streams
    from maestropy.adapter.tooling import loading

    standard_streams.keep()
    try:
        return loading.load(reference)
    except Exception as error:  # whatever it is goes on; only its traceback is written
        if verbose and error.__cause__ is not None:
            import traceback

            from maestropy.cli import screen

            screen.write_error("".join(traceback.format_exception(error.__cause__)))
        raise
    finally:
        standard_streams.repair()


def check_ports(ports: Mapping[str, int]) -> None:
    """Raise UsageError for the first flag whose value is no port; the system would take another one."""
    for flag, port in ports.items():
        if not 0 <= port <= _LARGEST_PORT:
            raise UsageError(f"{flag} is {port}; give a port from 1 to {_LARGEST_PORT}, or 0 for a free one")


def seconds(text: str, *, flag: str) -> float:
    """Parse a duration: seconds, or a number with a unit."""
    try:
        value = duration.seconds(text)
    except ValueError:
        raise UsageError(f"{flag} is {text!r}; give seconds, or a duration such as 10m") from None
    if not 0 <= value < float("inf"):
        raise UsageError(f"{flag} is {text!r}; give 0 seconds or more")
    return value
