"""What the history records of refused requests, and how many of them."""

import json
from datetime import UTC, datetime

import pytest

from maestropy.server.decide import rejection
from maestropy.server.decide.history import consumer_changes, kinds, rate, refusals
from maestropy.store import rows

NOW = datetime(2026, 11, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("method", "status", "result"),
    [
        ("GET", 200, None),
        ("GET", 401, "denied"),
        ("GET", 403, "denied"),
        ("GET", 404, None),
        ("GET", 400, None),
        ("DELETE", 403, "denied"),
        ("POST", 409, "conflict"),
        ("PATCH", 404, "not-found"),
        ("POST", 400, "invalid"),
        ("POST", 503, None),
    ],
)
def test_result_of_a_rest_request(method: str, status: int, result: str | None) -> None:
    assert refusals.of_http(method, status) == result


BASE = "/api/maestro/v1"


@pytest.mark.parametrize(
    ("template", "work_id", "consumer"),
    [
        pytest.param(f"{BASE}/resource-bundles/-/resend", "key", "", id="action-on-a-work"),
        pytest.param(f"{BASE}/resource-bundles/-", "key", "", id="work"),
        pytest.param(f"{BASE}/consumers/-/data-safety-hold/adoption", "", "key", id="action-on-a-consumer"),
        pytest.param(f"{BASE}/consumers/-", "", "key", id="consumer"),
        pytest.param(f"{BASE}/errors/-", "", "", id="neither"),
        pytest.param("-", "", "", id="no-route"),
    ],
)
def test_refused_request_is_about_what_its_path_names(template: str, work_id: str, consumer: str) -> None:
    assert refusals.named_in_path(template, "key") == (work_id, consumer)


@pytest.mark.parametrize(
    ("rejected", "result"),
    [
        (rejection.conflict("x", verb="update"), "conflict"),
        (rejection.forbidden("x", verb="update"), "denied"),
        (rejection.not_found("x"), "not-found"),
        (rejection.invalid("x", verb="create"), "invalid"),
        (rejection.unknown_consumer("x"), "invalid"),
    ],
)
def test_result_of_a_spec_request(rejected: rejection.Rejection, result: str) -> None:
    assert refusals.of_rejection(rejected) == result


@pytest.mark.parametrize("code", ["UNAVAILABLE", "INTERNAL", "RESOURCE_EXHAUSTED", "ABORTED", "DEADLINE_EXCEEDED"])
def test_failures_of_the_server_are_no_refusals(code: str) -> None:
    assert refusals.of_grpc_code(code) is None


@pytest.mark.parametrize(
    ("result", "is_quoted"), [("denied", True), ("conflict", True), ("invalid", False), ("not-found", False)]
)
def test_reason_of_an_invalid_request_is_not_recorded(result: kinds.Result, is_quoted: bool) -> None:
    subject = rows.HistoryEntry(kind="", at=NOW, source="s", version=3)
    entry = refusals.entry(subject, result=result, request="publish", reason="manifest 'hunter2' is wrong")
    assert ("hunter2" in entry.detail) is is_quoted
    assert (entry.kind, entry.result, entry.source, entry.version) == ("request.refused", result, "s", 3)


def test_flood_of_one_client_is_left_out_and_counted() -> None:
    budget = rate.for_refusals()
    recorded = sum(budget.allows("a", now=1000.0 + number / 1000) for number in range(1000))
    assert recorded == 20
    assert budget.allows("b", now=1001.0)
    assert budget.take_left_out() == 980
    assert budget.take_left_out() == 0
    assert budget.allows("a", now=1030.0)


def test_flood_of_many_clients_is_bounded_by_a_day() -> None:
    budget = rate.for_refusals()
    recorded = sum(budget.allows(f"client-{number}", now=number / 100) for number in range(100_000))
    assert recorded <= 500 + 1000 + 1


def test_fleet_may_reconnect_at_once() -> None:
    budget = rate.for_connections()
    assert all(budget.allows(f"consumer-{number % 10_000}", now=5.0) for number in range(20_000))


def test_consumer_is_summarised_by_the_names_of_its_labels() -> None:
    assert json.loads(consumer_changes.detail(b'{"b":"secret","a":"1"}')) == {"labels": ["a", "b"]}
    assert consumer_changes.detail(None) == "{}"
    many = json.dumps({f"k{number}": "" for number in range(100)}).encode()
    assert json.loads(consumer_changes.detail(many))["truncated"] is True


@pytest.mark.parametrize(
    ("text", "shown"),
    [("plain", "plain"), ("nul\0", "nul\N{REPLACEMENT CHARACTER}"), ("x" * 300, "x" * 255 + "…"), ("\ud800", "?")],
)
def test_texts_from_outside_are_bounded_and_storable(text: str, shown: str) -> None:
    assert kinds.short(text) == shown
