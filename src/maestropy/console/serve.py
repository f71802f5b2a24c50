"""Start and stop a console: its collector, its log follower and, on loopback, its own listener. No rules."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from maestropy.aio import tasks
from maestropy.console import sessions
from maestropy.console.actions import ActionAccess, OperatorPages
from maestropy.console.app import Console
from maestropy.console.collector import Collector
from maestropy.console.oidc.login import Login
from maestropy.console.pages.work_page import RestWorks, WorkPages
from maestropy.console.picture import Picture
from maestropy.console.requests import RequestFeed
from maestropy.sdk.client import AsyncMaestro
from maestropy.trace.access.options import WorkAccess
from maestropy.transport.http.limits import HttpLimits
from maestropy.transport.http.listener import HttpListener

LOOPBACK = "127.0.0.1"
PORT = 8088
"""Beside the ports of a server: 8000, 8080, 8083, 8090 and 8091."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """What a console reads and who may see it."""

    client: AsyncMaestro
    description: str
    """What the pages call the Maestro that they show."""
    access: WorkAccess | None = None
    """How the database and the clusters are reached for the page of one work; None: REST alone."""
    logs: Sequence[Path] = ()
    """The log files of server and agents that are followed for the requests."""
    api_flags: str = ""
    """The flags that lead commands to the same API."""
    actions: ActionAccess | None = None
    """How viewers may act; None: the console changes nothing."""
    gate: sessions.Gate = field(default_factory=lambda: sessions.Gate(allows_host=sessions.loopback_host))
    login: Login | None = None
    """The login at an OpenID provider; None: users paste a token, if the gate wants one."""


@asynccontextmanager
async def console(options: ConsoleOptions) -> AsyncIterator[Console]:
    """Run what a console reads with while entered; it reads nothing until somebody looks."""
    picture = Picture(options.description)
    collector = Collector(options.client, picture)

    def on_problem(text: str) -> None:
        if picture.source.log_problem != text:
            picture.source.log_problem = text
            picture.touch()

    feed = RequestFeed(options.logs, on_change=picture.touch, on_problem=on_problem, picture=picture)
    works = RestWorks(client=options.client, picture=picture, access=options.access, api_flags=options.api_flags)
    task_owner = tasks.TaskOwner()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(task_owner.stop)
        task_owner.start("console collector", collector.run())
        task_owner.start("console requests", feed.run())
        running = Console(
            picture=picture,
            collector=collector,
            requests=feed,
            pages=WorkPages(reader=works, picture=picture, requests=feed),
            gate=options.gate,
            operator=OperatorPages(picture=picture, gate=options.gate, access=options.actions),
            login=options.login,
            title=options.description,
        )
        stack.callback(running.end)
        yield running


@asynccontextmanager
async def serve(options: ConsoleOptions, *, port: int) -> AsyncIterator[str]:
    """Serve a console on loopback while entered; yield its address."""
    async with console(options) as running, listening(running, port=port) as address:
        yield address


@asynccontextmanager
async def listening(running: Console, *, port: int) -> AsyncIterator[str]:
    """Serve a console that runs, on loopback, while entered; yield its address."""
    running.collector.want()
    listener = HttpListener(running.app(), host=LOOPBACK, port=port, limits=HttpLimits())
    serving = tasks.TaskOwner().start("console listener", listener.serve(tls=None))
    try:
        query = f"?key={running.gate.key}" if running.gate.key else ""
        yield f"http://{LOOPBACK}:{listener.port}/{query}"
    finally:
        running.end()
        listener.stop()
        await serving
