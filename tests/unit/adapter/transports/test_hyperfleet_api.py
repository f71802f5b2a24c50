import json

import httpx
import pytest

from maestropy.adapter.decide import adapter_status, api_paths
from maestropy.adapter.event import Event
from maestropy.adapter.transports import hyperfleet_api
from maestropy.aio.clock import Clock
from maestropy.sdk import errors
from tests.unit.adapter.samples import EVENT


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
def test_error_class_of_failed_response(
    status: int, code: str, kind: type[errors.MaestroError], *, is_retryable: bool
) -> None:
    error = hyperfleet_api.error_from_response(status, {"code": code, "detail": "because"}, doing="put the status")
    assert type(error) is kind
    assert error.is_retryable is is_retryable
    assert "because" in str(error)


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (EVENT, "/api/hyperfleet/v1/clusters/abc"),
        (
            Event(resource_id="n", kind="NodePool", generation=1, owner_id="c"),
            "/api/hyperfleet/v1/clusters/c/nodepools/n",
        ),
        (Event(resource_id="x", kind="Widget", generation=1), "/api/hyperfleet/v1/resources/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="/custom/x"), "/custom/x"),
        (Event(resource_id="x", kind="Cluster", generation=1, href="https://api/custom/x"), "/custom/x"),
    ],
)
def test_api_path_of_resource(event: Event, path: str) -> None:
    assert api_paths.path_of(event) == path


@pytest.mark.parametrize(
    ("available", "date", "reason"),
    [
        ("Unknown", "Thu, 20 Aug 2026 10:00:00 GMT", "Available is Unknown"),
        ("True", "Thu, 20 Aug 2026 10:00:00 GMT", "the API has a newer status"),
        ("True", "Thu, 20 Aug 2026 09:58:00 GMT", "120 s ahead of the API's"),
        ("True", "Thu, 20 Aug 2026 10:01:00 GMT", "60 s behind the API's"),
        ("True", "rubbish", "the API has a newer status"),
    ],
    ids=["unknown", "newer", "clock-ahead", "clock-behind", "no-date"],
)
async def test_discarded_status_has_a_reason(available: str, date: str, reason: str) -> None:
    def respond(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content)["observed_generation"] == 5
        return httpx.Response(204, headers={"Date": date})

    async def scenario() -> hyperfleet_api.StatusReceipt:
        clock = Clock(epoch=lambda: 1787220000.0)
        async with hyperfleet_api.HyperFleetClient(hyperfleet_api.ApiSettings(url="http://api"), clock=clock) as client:
            client._http = httpx.AsyncClient(base_url="http://api", transport=httpx.MockTransport(respond))
            failed = adapter_status.failed("a", 5, reason="R", message="m")
            status = adapter_status.AdapterStatus(
                adapter="a",
                generation=5,
                applied=failed.applied,
                available=adapter_status.condition("Available", available, "R"),
                health=failed.health,
                finalized=failed.finalized,
            )
            return await client.put_status(EVENT, status)

    receipt = await scenario()
    assert isinstance(receipt, hyperfleet_api.StatusDiscarded)
    assert reason in receipt.reason
