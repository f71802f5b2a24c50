"""What counts as a slow request, and for how long its lane is slow."""

import asyncio

from maestropy.agent.decide.slow_lanes import Lane
from maestropy.agent.state.slow_requests import SlowRequests

SLOW, FAST = Lane("", "ConfigMap", "slow"), Lane("", "ConfigMap", "fast")
LANES = {f"{name}{number}": lane for number in range(5) for name, lane in (("slow", SLOW), ("fast", FAST))}


class Requests:
    """Slow requests with a clock of their own; works are in the lane that their name begins with."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lanes_read: list[str] = []
        self.slow = SlowRequests(lanes_of=self._lanes_of, monotonic=lambda: self.now)

    def _lanes_of(self, key: str) -> frozenset[Lane]:
        self.lanes_read.append(key)
        return frozenset([LANES[key]])


async def stuck_in(requests: Requests, key: str, *, until: asyncio.Event) -> None:
    """Reconcile a work whose request takes until an event."""
    requests.slow.started(key)
    with requests.slow.during(LANES[key]):
        await until.wait()
    requests.slow.ended(key)


async def test_works_of_a_slow_lane_wait_and_others_do_not() -> None:
    requests, answered = Requests(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for key in ("slow0", "slow1"):
            group.create_task(stuck_in(requests, key, until=answered))
        await asyncio.sleep(0)
        requests.now = 0.9
        assert not requests.slow.is_stuck("slow0")
        assert requests.slow.may_start("slow2")
        requests.now = 1.1
        assert requests.slow.is_stuck("slow0")
        assert not requests.slow.may_start("slow2")
        assert requests.slow.may_start("fast0")
        answered.set()
    assert requests.slow.may_start("slow2")


async def test_lane_stays_slow_for_some_seconds() -> None:
    requests = Requests()
    requests.slow.started("slow0")
    with requests.slow.during(SLOW):
        requests.now = 2.0
    assert requests.slow.ended("slow0")
    assert requests.slow.slow_lanes() == [SLOW]
    requests.now = 11.9
    assert requests.slow.slow_lanes() == [SLOW]
    requests.now = 12.1
    assert requests.slow.slow_lanes() == []


async def test_without_slow_requests_no_lane_is_computed() -> None:
    requests = Requests()
    for number in range(5):
        assert requests.slow.may_start(f"fast{number}")
        requests.slow.started(f"fast{number}")
        with requests.slow.during(FAST):
            requests.now += 0.1
    for number in range(5):
        requests.slow.ended(f"fast{number}")
    assert requests.lanes_read == []


async def test_work_between_two_requests_is_not_stuck() -> None:
    requests = Requests()
    requests.slow.started("slow0")
    requests.now = 5.0
    assert not requests.slow.is_stuck("slow0")
