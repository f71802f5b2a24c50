"""More comes than can be done: whoever is too many is told at once to come back, and memory stays where it was."""

import asyncio
from collections import Counter
from pathlib import Path

import grpc
import httpx
import pytest

from maestropy.wire.events import event, grpc_binding
from tests import waiting
from tests.faults import fault_programs
from tests.faults.fault_ledger import Ledger
from tests.faults.fault_parties import bundle_data, source_client
from tests.faults.fault_proxy import FaultProxy
from tests.faults.fault_world import FLAGS
from tests.stack import clients, harness

pytestmark = pytest.mark.peers

CALLS = 3500
PAYLOAD_BYTES = 60_000
READERS = 300
# What may wait is 64 MiB of requests; each is there as it came, as an event and as what will be stored.
GROWTH_BYTES = 400 * 2**20


async def publish(source: clients.Source, number: int, codes: Counter[str]) -> None:
    """Ask once, with a deadline, and count the answer."""
    asked = source.spec(event.SPEC_CREATE, f"v{number}", "cluster1", data=bundle_data("v", "x" * PAYLOAD_BYTES))
    try:
        await source.channel.unary_unary(grpc_binding.PUBLISH_METHOD)(grpc_binding.encode_publish(asked), timeout=60)
    except grpc.aio.AioRpcError as error:
        codes[error.code().name] += 1
    else:
        codes["OK"] += 1


async def test_a_flood_on_a_database_that_does_not_answer(
    reached: fault_programs.Postgres, tmp_path: Path, ledger: Ledger
) -> None:
    """The database is a black hole. Requests are refused in a way that may be tried again, before memory grows."""

    async with FaultProxy(reached.socket) as proxy:
        server = fault_programs.server(tmp_path, reached.behind(proxy.port), *FLAGS)
        async with fault_programs.programs(server), source_client(server.sources, ledger=ledger) as client:
            where = server.running()
            await where.add_consumer("cluster1")
            await client.insist("w", "cluster1", "before")
            before = server.memory_bytes()
            proxy.partition()
            codes: Counter[str] = Counter()
            sources = [clients.Source(address=server.sources) for _ in range(5)]
            flood = [asyncio.ensure_future(publish(sources[n % 5], n, codes)) for n in range(CALLS)]
            await waiting.until(lambda: codes.total() > 0, seconds=30, what="a refusal")
            async with httpx.AsyncClient(base_url=server.rest + harness.BASE, timeout=60, verify=False) as http:
                reading = asyncio.gather(*(http.get("/consumers") for _ in range(READERS)))
                await asyncio.wait_for(alive(where), 30)
                answers = await reading
            assert {(a.status_code, a.headers["Retry-After"]) for a in answers} == {(503, "5")}
            await asyncio.gather(*flood)
            for source in sources:
                await source.channel.close()
            grown = server.memory_bytes() - before
            print(f"answers {dict(codes)}, memory {before >> 20} MiB and {grown >> 20} MiB more")
            assert codes.keys() <= {"RESOURCE_EXHAUSTED", "UNAVAILABLE"}, codes
            assert grown < GROWTH_BYTES
            proxy.heal()
            await server.wait_ready()
            await client.insist("after", "cluster1", "text")
            assert "Traceback" not in server.log.read_text()


async def alive(where: harness.Running) -> None:
    """Wait until the probes say what they should: it lives, and is not ready."""
    await waiting.until(lambda: answers(where, "/livez", 200), what="liveness")
    await waiting.until(lambda: answers(where, "/healthcheck", 500), what="no readiness")


async def answers(where: harness.Running, path: str, code: int) -> bool:
    return await where.probe(path) == code
