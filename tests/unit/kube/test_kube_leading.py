"""Leading for real: candidates at one Lease of an API server that keeps resource versions."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from scripted_api import Answer, Asked, ScriptedApi, fails, says

from maestropy.aio.clock import Clock
from maestropy.kube.client import KubeClient
from maestropy.kube.leases import Candidate, LeadershipLost, Terms, lead


class LeaseServer:
    """One Lease with optimistic locking."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.is_away = False
        self.changed = asyncio.Condition()

    async def __call__(self, asked: Asked) -> Answer:
        if self.is_away:
            return fails(503, "ServiceUnavailable")
        if asked.method == "GET":
            return says(self.lease) if self.lease else fails(404, "NotFound")
        offered = asked.json()
        if asked.method == "POST" and self.lease is not None:
            return fails(409, "AlreadyExists")
        before = (self.lease or {"metadata": {"resourceVersion": "0"}})["metadata"]["resourceVersion"]
        if asked.method == "PUT" and offered["metadata"]["resourceVersion"] != before:
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


def run(scenario: Callable[[LeaseServer, Callable[..., Candidate]], Awaitable[None]]) -> None:
    async def main() -> None:
        server = LeaseServer()
        async with ScriptedApi(server) as api, KubeClient(api.address()) as client:

            def candidate(identity: str, **more: float) -> Candidate:
                times = {"lease_seconds": 30.0, "renew_seconds": 5.0, "retry_seconds": 0.005} | more
                terms = Terms(namespace="ns", name="lock", identity=identity, **times)
                return Candidate(client, terms, clock=Clock(), jitter=lambda: 0.0)

            async with asyncio.timeout(20):
                await scenario(server, candidate)

    asyncio.run(main())


def test_one_after_the_other() -> None:
    async def scenario(server: LeaseServer, candidate: Callable[..., Candidate]) -> None:
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

        await asyncio.gather(*(lead(candidate(name), lambda name=name: work(name)) for name in ("a", "b", "c")))
        assert sorted(order) == ["a", "b", "c"]
        assert server.holder == ""
        assert (server.lease or {})["spec"]["leaseTransitions"] == 2

    run(scenario)


def test_a_silent_leader_is_replaced_only_when_its_time_is_over() -> None:
    async def scenario(server: LeaseServer, candidate: Callable[..., Candidate]) -> None:
        await candidate("dead", lease_seconds=1).acquire()
        successor = candidate("next")
        started = asyncio.get_running_loop().time()
        await successor.acquire()
        assert asyncio.get_running_loop().time() - started >= 0.99
        assert (server.holder, successor.leader) == ("next", "next")

    run(scenario)


def test_work_stops_when_somebody_else_holds_the_lease() -> None:
    async def scenario(server: LeaseServer, candidate: Callable[..., Candidate]) -> None:
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
            await lead(candidate("a"), work)
        assert stopped
        assert server.holder == "thief"

    run(scenario)


def test_work_stops_when_the_lease_cannot_be_renewed() -> None:
    async def scenario(server: LeaseServer, candidate: Callable[..., Candidate]) -> None:
        async def work() -> None:
            server.is_away = True
            await asyncio.Future()

        with pytest.raises(LeadershipLost, match="not renewed within"):
            await lead(candidate("a", renew_seconds=0.1), work)

    run(scenario)


def test_a_failure_of_the_work_is_the_callers_and_releases() -> None:
    async def scenario(server: LeaseServer, candidate: Callable[..., Candidate]) -> None:
        async def work() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await lead(candidate("a"), work)
        assert server.holder == ""

    run(scenario)
