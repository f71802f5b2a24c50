"""Bad input over real gRPC: a clear refusal, one line in the journal, nothing written, and the server goes on."""

from collections.abc import AsyncIterator

import pytest

from maestropy.store.dsn import Dsn
from maestropy.wire.events import grpc_binding
from tests.stack import hostile_requests
from tests.stack.secure_server import (
    BUNDLES,
    CONSUMER,
    Channel,
    Running,
    add_consumers,
    refusal,
    report,
    running,
    send,
    spec,
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("port", "cases"),
    [
        pytest.param("sources", hostile_requests.REFUSED_BY_SOURCES, id="sources"),
        pytest.param("agents", hostile_requests.REFUSED_BY_AGENTS, id="agents"),
    ],
)
@pytest.mark.parametrize("verbosity", [2, 10])
async def test_every_bad_request_is_refused_with_reason_and_trace(
    database: Dsn, port: str, cases: tuple[hostile_requests.Case, ...], verbosity: int
) -> None:
    """All in one server, so that a request which harms it is seen by those that follow."""

    await add_consumers(database, CONSUMER, "cluster2")
    wrong: list[str] = []
    async with running(database, verbosity=verbosity) as server, server.sources() as sources:
        await send(sources, grpc_binding.encode_publish(spec("existing")))
        channel = sources if port == "sources" else server.agents()
        before = await server.counts()
        for case in cases:
            wrong += [f"{case[0]}: {problem}" async for problem in _problems(server, channel, case)]
        assert await server.counts() == before
        await _still_serves(server)
        await channel.close()
    wrong = wrong
    assert not wrong, "\n".join(wrong)


async def _problems(server: Running, channel: Channel, case: hostile_requests.Case) -> AsyncIterator[str]:
    _, request, code, fragments = case
    told = len(server.refusals())
    found, text = await refusal(channel, request)
    if found != code:
        yield f"{found} ({text[:200]}), not {code}"
    for fragment in fragments:
        if fragment not in text:
            yield f"{text[:300]!r} lacks {fragment!r}"
    lines = server.refusals()[told:]
    if len(lines) != 1:
        yield f"{len(lines)} lines in the journal"
    for line in lines:
        if line["reason"] != text:
            yield f"the journal says {line['reason'][:200]!r}, the caller heard {text[:200]!r}"
    server.log.truncate(0)
    server.log.seek(0)


async def _still_serves(server: Running) -> None:
    async with server.sources() as sources, server.agents() as agents:
        await send(sources, grpc_binding.encode_publish(spec("afterwards")))
        await send(agents, grpc_binding.encode_publish(report("afterwards")))
    async with server.http("rest") as rest:
        listed = await rest.get(BUNDLES)
        assert listed.status_code == 200
        assert {item["id"] for item in listed.json()["items"]} == {"existing", "afterwards"}
