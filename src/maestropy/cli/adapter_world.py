"""What an adapter runs on, from flags and environment: a transport, a target, the HyperFleet API."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from maestropy.cli.failure import UsageError
from maestropy.flags import duration

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter
    from maestropy.adapter.perform import Transport, World
    from maestropy.adapter.resource import Resource

_GROUP = Group("World", sort_key=80)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorldFlags:
    """Where works go; Maestro itself is found by MAESTRO_API_URL, MAESTRO_GRPC_URL and so on, as by any client."""

    event_timeout: Annotated[str, Parameter(group=_GROUP, help="How long one event may take, beside --wait.")] = "2m"
    transport: Annotated[
        Literal["maestro", "kubernetes"], Parameter(group=_GROUP, help="What carries works to clusters.")
    ] = "maestro"
    consumer: Annotated[
        str | None,
        Parameter(group=_GROUP, help="The cluster for new works (MANAGEMENT_CLUSTER_CONSUMER).", show_default=False),
    ] = None
    kubeconfig: Annotated[
        str, Parameter(group=_GROUP, help="The cluster of --transport kubernetes.", show_default=False)
    ] = ""
    namespace: Annotated[
        str,
        Parameter(group=_GROUP, help="Where --transport kubernetes keeps its records.", show_default=False),
    ] = ""


@asynccontextmanager
async def opened(adapter: "Adapter", flags: WorldFlags, *, given: "Resource | None" = None) -> "AsyncIterator[World]":
    """Connect to everything there is, while entered."""
    from maestropy.adapter import hyperfleet
    from maestropy.adapter.books import Books
    from maestropy.adapter.perform import World
    from maestropy.sdk import targeting

    async with AsyncExitStack() as stack:
        settings = hyperfleet.from_environment(os.environ)
        api = await stack.enter_async_context(hyperfleet.HyperFleet(settings)) if settings else None
        transport = await _transport(stack, adapter, flags)
        target = adapter.target or targeting.from_environment()
        if flags.consumer:
            target = targeting.static(flags.consumer)
        elif flags.transport == "kubernetes":
            target = targeting.static("kubernetes")
        yield World(transport=transport, catalogue=Books(api=api, given=given), target=target)


async def _transport(stack: AsyncExitStack, adapter: "Adapter", flags: WorldFlags) -> "Transport":
    if flags.transport == "kubernetes":
        from maestropy.adapter import perform_kube

        opening = perform_kube.opened(flags.kubeconfig, namespace=flags.namespace, environ=os.environ)
        return await stack.enter_async_context(opening)
    from maestropy.adapter.perform_maestro import PATIENT, MaestroTransport
    from maestropy.sdk.client import AsyncMaestro

    client = AsyncMaestro(environ=_with_source(os.environ, adapter.name), retry=PATIENT)
    await stack.enter_async_context(client)
    return MaestroTransport(client)


def _with_source(environ: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the environment with the adapter's name as source id, unless it names another."""
    from maestropy.sdk.settings import VARIABLES

    is_set = any(environ.get(variable) for variable in VARIABLES["source"])
    return dict(environ) if is_set else {**environ, VARIABLES["source"][0]: name}


def seconds(text: str, *, flag: str) -> float:
    """Read a length of time: seconds, or a number with its unit."""
    try:
        found = duration.seconds(text)
    except ValueError:
        raise UsageError(f"{flag} is {text!r}; give seconds, or a duration such as 10m") from None
    if not 0 <= found < float("inf"):
        raise UsageError(f"{flag} is {text!r}; give 0 seconds or more")
    return found
