"""Probes of an adapter that receives its events from a broker."""

import asyncio

import httpx

from maestropy.adapter import probes
from maestropy.adapter.metrics import AdapterMetrics


def answers(app: object, *paths: str) -> list[tuple[int, str]]:
    async def scenario() -> list[tuple[int, str]]:
        transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]  # httpx's own name for an application
        async with httpx.AsyncClient(transport=transport, base_url="http://probe") as client:
            responses = [await client.get(path) for path in paths]
        return [(response.status_code, response.text) for response in responses]

    return asyncio.run(scenario())


def test_readiness_follows_the_connection_of_the_broker() -> None:
    state = probes.AdapterProbes()
    waiting = (503, '{"status":"error","checks":{"config":"ok","broker":"error"}}')
    assert answers(state.app, "/healthz", "/readyz") == [(200, "ok\n"), waiting]
    is_online = True
    state.connected(lambda: is_online)
    assert answers(state.app, "/readyz") == [(200, '{"status":"ok","checks":{"config":"ok","broker":"ok"}}')]
    is_online = False
    assert answers(state.app, "/readyz") == [waiting]


def test_a_stopping_adapter_is_alive_and_not_ready() -> None:
    state = probes.AdapterProbes()
    state.connected(lambda: True)
    state.stopping()
    stopping = (503, '{"status":"error","message":"server is shutting down"}')
    assert answers(state.app, "/healthz", "/readyz") == [(200, "ok\n"), stopping]


def test_scrapes_get_the_metrics_of_the_framework() -> None:
    [(status, text)] = answers(probes.metrics_app(AdapterMetrics("gcp-adapter", version="1.0")), "/metrics")
    assert status == 200
    assert 'hyperfleet_adapter_up{component="gcp-adapter",version="1.0"} 1' in text
