"""`maestro adapter serve`: deal with every event that comes in over HTTP, until asked to stop."""

import os
import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import adapter_world, running
from maestropy.cli.adapter_world import WorldFlags

if TYPE_CHECKING:
    from maestropy.adapter.definition import Adapter

EXAMPLES = """\
Examples:

  maestro adapter serve adapter.py --port 8080
      POST / takes a CloudEvent and answers 204 when it is dealt with, 503 when it should come again

Reports go to the HyperFleet API (HYPERFLEET_API_URL). /healthz and /readyz are for probes."""

app = App(
    name="serve",
    help="Deal with every event that comes in over HTTP.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    adapter: Annotated[str, Parameter(help="A file, a folder with adapter.py, or module:name.")],
    /,
    *,
    host: Annotated[str, Parameter(help="The address to listen on.")] = "",
    port: Annotated[int, Parameter(help="The port to listen on; 0 takes a free one.")] = 8080,
    workers: Annotated[int, Parameter(help="How many events at once.")] = 8,
    world: WorldFlags | None = None,
) -> int:
    """Serve events."""
    from maestropy.adapter import loading

    found = loading.load(adapter)
    listening = (host, port, workers)
    return running.run(lambda stop: _run(found, world or WorldFlags(), listening=listening, stop=stop))


async def _run(adapter: "Adapter", flags: WorldFlags, *, listening: tuple[str, int, int], stop: running.Stop) -> int:
    import asyncio
    import logging

    from maestropy.adapter import hyperfleet
    from maestropy.adapter import running as kit
    from maestropy.adapter.inbox_http import HttpInbox
    from maestropy.adapter.service import Service
    from maestropy.transport.http_listener import HttpListener

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for each in ("httpx", "uvicorn.error"):
        logging.getLogger(each).setLevel(logging.WARNING)
    if hyperfleet.from_environment(os.environ) is None:
        advice = "set %s: without it events must carry their spec, and reports end in this log"
        logging.getLogger(__name__).warning(advice, hyperfleet.API_VARIABLES[0])
    host, port, workers = listening
    inbox = HttpInbox()
    listener = HttpListener(inbox.app, host=host, port=port)
    limit = adapter_world.seconds(flags.event_timeout, flag="--event-timeout")
    patience = kit.Patience(event_seconds=limit)
    async with adapter_world.opened(adapter, flags) as world:
        service = Service(
            inbox, lambda event: kit.deal(adapter, event, world=world, patience=patience), workers=workers
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(service.run(), name="adapter-service")
            serving = group.create_task(listener.serve(tls=None), name="adapter-http")
            sys.stdout.write(f"adapter {adapter.name} takes events on port {listener.port}\n")
            sys.stdout.flush()
            await stop.wait()
            # New events are turned away while those under way are finished; then the workers may go.
            listener.stop()
            await serving
            working.cancel()
    return 0
