"""The probes' answers, and that a hung database does not hang them."""

import asyncio
import io
from collections.abc import Awaitable, Callable

import httpx
import pytest

from maestropy.journal import Journal
from maestropy.server import health
from maestropy.server.health import Readiness


def probe(path: str, readiness: Callable[[], Awaitable[Readiness]]) -> httpx.Response:
    journal = Journal(io.BytesIO(), clock=lambda: 0.0, verbosity=9)
    app = health.create_health_app(readiness, journal=journal)

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

    answer = probe("/healthcheck", readiness)

    assert (answer.status_code, answer.text) == (status, body)


@pytest.mark.parametrize("readiness", [_fails, _hangs])
def test_no_answer_is_an_error(readiness: Callable[[], Awaitable[Readiness]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", 0.05)

    answer = probe("/healthcheck", readiness)

    assert (answer.status_code, answer.text) == (500, '{"status": "error"}')


def test_livez_asks_nobody() -> None:
    answer = probe("/livez", _hangs)

    assert (answer.status_code, answer.text) == (200, '{"status": "ok"}')


def test_other_paths_are_not_there() -> None:
    assert probe("/secrets", _hangs).status_code == 404
