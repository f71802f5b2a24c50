"""A source and an agent in a process of their own: the CPU time of the server has the transport then, no clients."""

import asyncio
import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

from tests.stack import clients


class Remote:
    """Sends requests through the clients in the other process."""

    def __init__(self, pipe: "Connection[Request, str]") -> None:
        self._pipe = pipe

    async def publish(self, requests: Sequence[bytes], *, is_spec: bool) -> None:
        """Send requests at once; return when each is answered and its event has come to the agent or the source."""
        self._pipe.send((is_spec, list(requests)))
        error = await asyncio.to_thread(self._pipe.recv)
        if error:
            raise RuntimeError(f"the clients failed: {error}")


Request = tuple[bool, list[bytes]] | None


@contextmanager
def remote(*, sources: str, agents: str, consumer: str) -> Iterator[Remote]:
    """Run the clients until the block ends. Entering waits for answers of the server: do it in a thread."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_run, args=(theirs, sources, agents, consumer), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.recv()
        yield Remote(ours)
        ours.send(None)
        process.join(10)
    finally:
        process.kill()


def _run(pipe: "Connection[str, Request]", sources: str, agents: str, consumer: str) -> None:
    asyncio.run(_serve(pipe, sources, agents, consumer))


async def _serve(pipe: "Connection[str, Request]", sources: str, agents: str, consumer: str) -> None:
    source, agent = clients.Source(address=sources), clients.Agent(address=agents, consumer=consumer)
    async with source.subscribe() as statuses, agent.subscribe() as specs:
        pipe.send("")
        while (request := await asyncio.to_thread(pipe.recv)) is not None:
            is_spec, messages = request
            sender, stream = (source, specs) if is_spec else (agent, statuses)
            try:
                await asyncio.gather(*(sender.publish_bytes(message) for message in messages))
                for _ in messages:
                    await stream.take()
            except Exception as error:  # said by the other process, which ends this one
                pipe.send(repr(error))
            else:
                pipe.send("")
