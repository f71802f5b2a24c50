"""The kit's borders: the HyperFleet API's answers, records on Kubernetes, settling events, the fake API's rules."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from adapter_samples import EVENT, work

from maestropy.adapter import hyperfleet, kuberecord, report
from maestropy.adapter.event import Event
from maestropy.adapter.failure import Failure
from maestropy.adapter.pipeline import Outcome
from maestropy.adapter.running import AGAIN, DONE, FAILED, MISUSED, exit_code
from maestropy.adapter.service import Again, Delivery, Done, Service, Settlement
from maestropy.sdk import errors
from maestropy.testing.hyperfleet import judge


@pytest.mark.parametrize(
    ("status", "code", "kind", "is_retryable"),
    [
        (404, "HYPERFLEET-NTF-001", errors.NotFound, False),
        (404, "HYPERFLEET-NTF-000", errors.ConfigError, False),
        (400, "HYPERFLEET-VAL-000", errors.Invalid, False),
        (401, "", errors.Unauthorized, False),
        (403, "HYPERFLEET-AUZ-001", errors.Forbidden, False),
        (405, "", errors.ConfigError, False),
        (409, "", errors.Conflict, False),
        (429, "", errors.Unavailable, True),
        (500, "", errors.Unavailable, True),
        (503, "", errors.Unavailable, True),
    ],
)
def test_answers_of_the_api(status: int, code: str, kind: type[errors.MaestroError], *, is_retryable: bool) -> None:
    found = hyperfleet.refusal(status, {"code": code, "detail": "because"}, doing="put the status")
    assert type(found) is kind
    assert found.is_retryable is is_retryable
    assert "because" in str(found)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (EVENT, "/api/hyperfleet/v1/clusters/abc"),
        (
            Event(resource_id="n", kind="NodePool", generation=1, owner_id="c"),
            "/api/hyperfleet/v1/clusters/c/nodepools/n",
        ),
        (Event(resource_id="x", kind="Widget", generation=1), "/api/hyperfleet/v1/resources/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="/given/x"), "/given/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="https://api/given/x"), "/given/x"),
    ],
)
def test_where_a_resource_is(event: Event, path: str) -> None:
    assert hyperfleet.path_of(event) == path


@pytest.mark.parametrize(
    ("available", "date", "why"),
    [
        ("Unknown", "Thu, 20 Aug 2026 10:00:00 GMT", "Available is Unknown"),
        ("True", "Thu, 20 Aug 2026 10:00:00 GMT", "it has a newer status"),
        ("True", "Thu, 20 Aug 2026 09:58:00 GMT", "120 s ahead of the API's"),
        ("True", "Thu, 20 Aug 2026 10:01:00 GMT", "60 s behind the API's"),
        ("True", "rubbish", "it has a newer status"),
    ],
    ids=["unknown", "newer", "clock-ahead", "clock-behind", "no-date"],
)
def test_a_discarded_status_says_why(available: str, date: str, why: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content)["observed_generation"] == 5
        return httpx.Response(204, headers={"Date": date})

    async def scenario() -> hyperfleet.Reception:
        clock = hyperfleet.Clock(epoch=lambda: 1787220000.0)
        async with hyperfleet.HyperFleet(hyperfleet.ApiSettings(url="http://api"), clock=clock) as client:
            client._http = httpx.AsyncClient(base_url="http://api", transport=httpx.MockTransport(answer))
            told = report.failed("a", 5, reason="R", message="m")
            told = report.Report(
                adapter="a",
                generation=5,
                applied=told.applied,
                available=report.condition("Available", available, "R"),
                health=told.health,
                finalized=told.finalized,
            )
            return await client.put_status(EVENT, told)

    found = asyncio.run(scenario())
    assert isinstance(found, hyperfleet.Discarded)
    assert why in found.why


@pytest.mark.parametrize(
    ("path", "value"),
    [(".status.ready", 3), (".status", {"ready": 3}), ("@", {"status": {"ready": 3}})],
)
def test_values_of_live_objects(path: str, value: object) -> None:
    assert kuberecord.value_at({"status": {"ready": 3}}, path) == value


def test_a_path_that_is_more_than_names_is_refused() -> None:
    with pytest.raises(errors.Invalid, match="more than names and dots"):
        kuberecord.value_at({}, ".status.conditions[0]")


def test_a_record_holds_no_content() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "d"}, "data": {"k": "djE="}}
    record = kuberecord.record(work().add(secret), namespace="default", version=3)
    assert "djE=" not in json.dumps(record)
    read = kuberecord.work_of(record, [{"status": {"a": 1}}, None])
    assert (read.name, read.version, read.observed_version) == ("w-abc", 3, 3)
    assert read.feedback("status") == {"a": 1}
    applied = read.condition("Applied")
    assert applied
    assert (applied.status, applied.message) == ("False", "1 of 2 objects are not there")


PASSING = Failure(reason="Unavailable", message="away", is_transient=True)
LASTING = Failure(reason="Invalid", message="bad", is_transient=False)
UNSET = Failure(reason="ConfigError", message="api_url is not set", is_transient=False)
TOLD = report.failed("a", 5, reason="R", message="m")
WELL = replace(TOLD, health=report.healthy(), available=report.condition("Available", "False", "Provisioning"))


@pytest.mark.parametrize(
    ("outcome", "is_awaited", "code"),
    [
        (Outcome(report=None), False, DONE),
        (Outcome(report=TOLD, failure=PASSING), False, AGAIN),
        (Outcome(report=TOLD, failure=LASTING), False, FAILED),
        (Outcome(report=TOLD), False, FAILED),
        (Outcome(report=TOLD, failure=UNSET), False, MISUSED),
        (Outcome(report=WELL), False, DONE),
        (Outcome(report=WELL), True, AGAIN),
        (Outcome(report=replace(WELL, available=report.condition("Available", "True", "R"))), True, DONE),
    ],
    ids=["gone", "away", "invalid", "foreign", "unset", "not-yet", "not-yet-and-awaited", "awaited"],
)
def test_exit_codes(outcome: Outcome, *, is_awaited: bool, code: int) -> None:
    assert exit_code(outcome, is_awaited=is_awaited) == code


def test_events_of_one_resource_wait_for_each_other_and_those_of_others_do_not() -> None:
    busy: list[str] = []
    together: list[set[str]] = []
    settled: list[Settlement] = []

    async def scenario() -> None:
        queue: asyncio.Queue[Delivery] = asyncio.Queue()
        all_done = asyncio.Event()

        async def settle(found: Settlement) -> None:
            settled.append(found)
            if len(settled) == 4:
                all_done.set()

        for name in ("a", "a", "b", "fails"):
            body = json.dumps({"id": name, "kind": "Cluster", "generation": 1}).encode()
            queue.put_nowait(Delivery(body=body, settle=settle))

        class Inbox:
            async def next(self) -> Delivery:
                return await queue.get()

        async def deal(event: Event) -> Outcome:
            assert event.resource_id not in busy
            busy.append(event.resource_id)
            together.append(set(busy))
            await asyncio.sleep(0)
            busy.remove(event.resource_id)
            if event.resource_id == "fails":
                raise RuntimeError("unexpected")
            return Outcome(report=None)

        service = Service(Inbox(), deal, workers=4)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(service.run())
            await all_done.wait()
            running.cancel()
        assert service._turns == {}

    asyncio.run(scenario())
    assert {"a", "b"} <= set().union(*together)
    assert any(len(each) > 1 for each in together)
    assert sorted(type(each).__name__ for each in settled) == ["Again", "Done", "Done", "Done"]
    assert Done() in settled
    assert any(isinstance(each, Again) and "RuntimeError" in each.reason for each in settled)


def status(generation: Any = 5, time: str = "2026-01-01T00:00:01Z", available: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Applied", "status": "True"}, {"type": "Available", "status": available}]
    health = {"type": "Health", "status": "True"}
    return {
        "adapter": "a",
        "observed_generation": generation,
        "observed_time": time,
        "conditions": [*conditions, health],
    }


@pytest.mark.parametrize(
    ("sent", "known", "answer"),
    [
        pytest.param(status(), None, 201, id="first"),
        pytest.param(status(available="Unknown"), None, 201, id="first-unknown"),
        pytest.param(status(available="Unknown"), status(), 204, id="later-unknown"),
        pytest.param(status(6), None, 204, id="future-generation"),
        pytest.param(status(4), status(), 204, id="older-generation"),
        pytest.param(status(time="2026-01-01T00:00:00Z"), status(), 204, id="older-time"),
        pytest.param(status("5"), None, 400, id="text-generation"),
        pytest.param(status() | {"conditions": []}, None, 400, id="no-conditions"),
    ],
)
def test_the_fake_api_judges_as_the_real_one(sent: dict[str, Any], known: dict[str, Any] | None, answer: int) -> None:
    assert judge(sent, resource={"generation": 5}, known=known) == answer
