"""Responses of the probes, also when the database hangs."""

import asyncio
import io
from collections.abc import Awaitable, Callable

import httpx
import pytest

from maestropy.journal import Journal
from maestropy.server.runtime import health
from maestropy.server.runtime.health import Readiness


def probe(path: str, readiness: Callable[[], Awaitable[Readiness]], *, note: str = "") -> httpx.Response:
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=9)
    app = health.create_health_app(readiness, journal=journal, note=lambda: note)

    async def scenario() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://probe") as client:
            return await client.get(path)

    return asyncio.run(scenario())


async def _fails() -> Readiness:
    raise OSError("no route to the database")


async def _hangs() -> Readiness:
    await asyncio.Event().wait()
    return Readiness.READY


@pytest.mark.parametrize(
    ("state", "status", "body"),
    [
        (Readiness.READY, 200, '{"status": "ok"}'),
        (Readiness.NOT_READY, 503, '{"status": "not ready"}'),
        (Readiness.BROKEN, 500, '{"status": "error"}'),
    ],
)
def test_healthcheck(state: Readiness, status: int, body: str) -> None:
    async def readiness() -> Readiness:
        return state

    response = probe("/healthcheck", readiness)

    assert (response.status_code, response.text) == (status, body)


def test_instance_that_is_not_ready_says_why() -> None:
    async def readiness() -> Readiness:
        raise health.NotReady('the database "d" takes no writes')

    response = probe("/healthcheck", readiness)

    assert response.status_code == 503
    assert response.json() == {"status": "not ready", "reason": 'the database "d" takes no writes'}


@pytest.mark.parametrize(
    ("state", "status", "body"),
    [
        pytest.param(Readiness.READY, 200, {"status": "ok", "reason": "a topic does not exist"}, id="ready"),
        pytest.param(Readiness.NOT_READY, 503, {"status": "not ready"}, id="not-ready"),
    ],
)
def test_problem_with_the_broker_is_shown_by_an_instance_that_is_ready(
    state: Readiness, status: int, body: dict[str, str]
) -> None:
    async def readiness() -> Readiness:
        return state

    response = probe("/healthcheck", readiness, note="a topic does not exist")

    assert (response.status_code, response.json()) == (status, body)


@pytest.mark.parametrize("readiness", [_fails, _hangs])
def test_failed_or_slow_check_is_an_error(
    readiness: Callable[[], Awaitable[Readiness]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CHECK_TIMEOUT_SECONDS", 0.05)

    response = probe("/healthcheck", readiness)

    assert (response.status_code, response.text) == (500, '{"status": "error"}')


def test_livez_checks_nothing() -> None:
    response = probe("/livez", _hangs)

    assert (response.status_code, response.text) == (200, '{"status": "ok"}')


def test_other_paths_are_not_found() -> None:
    assert probe("/secrets", _hangs).status_code == 404
