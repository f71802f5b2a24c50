"""Leader election of several candidates with one Lease and real resource versions."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from maestropy.aio.clock import Clock
from maestropy.kube.client import KubeClient
from maestropy.kube.leases import LeaderElectionSettings, LeaderElector, LeadershipLost, run_while_leading
from tests.scripted_api import Answer, Asked, ScriptedApi, fails, says


class LeaseServer:
    """One Lease with optimistic locking."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.is_away = False
        self.changed = asyncio.Condition()

    async def __call__(self, received: Asked) -> Answer:
        if self.is_away:
            return fails(503, "ServiceUnavailable")
        if received.method == "GET":
            return says(self.lease) if self.lease else fails(404, "NotFound")
        offered = received.json()
        if received.method == "POST" and self.lease is not None:
            return fails(409, "AlreadyExists")
        before = (self.lease or {"metadata": {"resourceVersion": "0"}})["metadata"]["resourceVersion"]
        if received.method == "PUT" and offered["metadata"]["resourceVersion"] != before:
            return fails(409, "Conflict")
        offered["metadata"]["resourceVersion"] = str(int(before) + 1)
        self.lease = offered
        async with self.changed:
            self.changed.notify_all()
        return says(self.lease)

    @property
    def holder(self) -> str:
        return str((self.lease or {"spec": {}})["spec"].get("holderIdentity", ""))

    async def wait_for(self, condition: Callable[[], bool]) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)


@contextlib.asynccontextmanager
async def lease_server() -> AsyncIterator[tuple[LeaseServer, Callable[..., LeaderElector]]]:
    server = LeaseServer()
    async with ScriptedApi(server) as api, KubeClient(api.address()) as client:

        def candidate(identity: str, **more: float) -> LeaderElector:
            times = {"lease_seconds": 30.0, "renew_seconds": 5.0, "retry_seconds": 0.005} | more
            terms = LeaderElectionSettings(namespace="ns", name="lock", identity=identity, **times)
            return LeaderElector(client, terms, clock=Clock(), jitter=lambda: 0.0)

        async with asyncio.timeout(20):
            yield server, candidate


async def test_next_candidate_leads_after_release() -> None:
    async with lease_server() as (server, candidate):
        order: list[str] = []
        leading = 0

        async def work(name: str) -> None:
            nonlocal leading
            leading += 1
            assert leading == 1
            order.append(name)
            renewals = (server.lease or {})["metadata"]["resourceVersion"]
            await server.wait_for(lambda: int((server.lease or {})["metadata"]["resourceVersion"]) > int(renewals) + 2)
            leading -= 1

        await asyncio.gather(
            *(run_while_leading(candidate(name), functools.partial(work, name)) for name in ("a", "b", "c"))
        )
        assert sorted(order) == ["a", "b", "c"]
        assert server.holder == ""
        assert (server.lease or {})["spec"]["leaseTransitions"] == 2


async def test_silent_leader_is_replaced_when_its_lease_expires() -> None:
    async with lease_server() as (server, candidate):
        await candidate("dead", lease_seconds=1).acquire()
        successor = candidate("next")
        started = asyncio.get_running_loop().time()
        await successor.acquire()
        assert asyncio.get_running_loop().time() - started >= 0.99
        assert (server.holder, successor.leader) == ("next", "next")


async def test_work_stops_when_another_process_holds_the_lease() -> None:
    async with lease_server() as (server, candidate):
        stopped = False

        async def work() -> None:
            nonlocal stopped
            try:
                assert server.lease is not None
                server.lease["spec"]["holderIdentity"] = "thief"
                server.lease["metadata"]["resourceVersion"] = "77"
                await asyncio.Future()
            finally:
                stopped = True

        with pytest.raises(LeadershipLost, match="held by thief"):
            await run_while_leading(candidate("a"), work)
        assert stopped
        assert server.holder == "thief"


async def test_work_stops_when_the_lease_cannot_be_renewed() -> None:
    async with lease_server() as (server, candidate):

        async def work() -> None:
            server.is_away = True
            await asyncio.Future()

        with pytest.raises(LeadershipLost, match="not renewed within"):
            await run_while_leading(candidate("a", renew_seconds=0.1), work)


async def test_error_of_the_work_is_raised_and_the_lease_released() -> None:
    async with lease_server() as (server, candidate):

        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await run_while_leading(candidate("a"), work)
        assert server.holder == ""
