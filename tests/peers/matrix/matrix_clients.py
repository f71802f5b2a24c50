"""Both clients behind the words of the Go work client, so that one scenario fits either."""

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from maestropy import AsyncMaestro, Maestro, MaestroError, RetryPolicy, Work
from tests.certificates import CertFiles
from tests.peers.peer_build import Programs
from tests.peers.peer_clients import Json, Lines, Refused, WorkClient
from tests.peers.peer_servers import Server


class Client(Protocol):
    """What the scenario asks of a client; works are ManifestWorks as JSON, refusals are `Refused`."""

    def create(self, namespace: str, work: Json) -> Json: ...
    def get(self, namespace: str, name: str) -> Json: ...
    def patch(self, namespace: str, old: Json, new: Json) -> Json: ...
    def delete(self, namespace: str, name: str) -> None: ...
    def list(self, namespace: str, *, selector: str = "") -> tuple[list[Json], str]: ...
    def watch(self, namespace: str) -> str: ...
    def wait_watched(self, watch: str, wanted: Callable[[Json], bool], *, what: str, seconds: float = 60) -> Json: ...
    def close(self) -> None: ...


class SecureWorkClient(WorkClient):
    """Maestro's Go work client over mTLS, which reconnects at once."""

    def __init__(self, programs: Programs, server: Server, *, source: str, config: Path, log: Path) -> None:
        where: list[str | Path] = ["-rest", server.rest_url, "-grpc-config", config, "-reconnect-delay", "300ms"]
        Lines.__init__(self, [programs.workclient, *where, "-source", source], log=log)
        self.source = source
        self._numbers = itertools.count(1)


class PythonClient:
    """Our SDK, the blocking half."""

    def __init__(self, server: Server, *, source: str, ca: Path, files: CertFiles) -> None:
        self._options: dict[str, Any] = {
            "environ": {},
            "api_url": server.rest_url,
            "grpc_url": server.grpc_addr,
            "source": source,
            "ca_file": str(ca),
            "client_cert_file": str(files.cert),
            "client_key_file": str(files.key),
            # A test waits for a refusal, and would wait for all repetitions first.
            "retry": RetryPolicy(attempts=3),
        }
        self._maestro = Maestro(**self._options)
        self._watches: dict[str, _Diary] = {}

    def create(self, namespace: str, work: Json) -> Json:
        with _refusals():
            return dict(self._maestro.works(namespace).create(Work.from_dict(work)).to_dict())

    def get(self, namespace: str, name: str) -> Json:
        with _refusals():
            return dict(self._maestro.works(namespace).get(name).to_dict())

    def patch(self, namespace: str, old: Json, new: Json) -> Json:
        version = old["metadata"]["generation"]
        name = old["metadata"]["name"]
        change = {"metadata": {"labels": new["metadata"].get("labels", {})}, "spec": new["spec"]}
        with _refusals():
            return dict(self._maestro.works(namespace).patch(name, change, version=version).to_dict())

    def delete(self, namespace: str, name: str) -> None:
        with _refusals():
            self._maestro.works(namespace).delete(name)

    def list(self, namespace: str, *, selector: str = "") -> tuple[list[Json], str]:
        with _refusals():
            return [dict(each.to_dict()) for each in self._maestro.works(namespace).list(labels=selector)], ""

    def watch(self, namespace: str) -> str:
        number = str(len(self._watches))
        self._watches[number] = _Diary(self._options, namespace)
        return number

    def wait_watched(self, watch: str, wanted: Callable[[Json], bool], *, what: str, seconds: float = 60) -> Json:
        return self._watches[watch].wait(wanted, what=what, seconds=seconds)

    def close(self) -> None:
        for diary in self._watches.values():
            diary.close()
        self._maestro.close()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except MaestroError as error:
        raise Refused({"reason": type(error).__name__, "code": 0, "message": str(error)}) from error


class _Diary:
    """What a watch has told, in the words of the Go client; a thread of its own listens."""

    def __init__(self, options: dict[str, Any], namespace: str) -> None:
        self._options, self._namespace = options, namespace
        self._told: list[Json] = []
        self._news = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._listen())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._loop_closed(), suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)

    @contextmanager
    def _loop_closed(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _listen(self) -> None:
        async with AsyncMaestro(**self._options) as maestro:
            async with maestro.works(self._namespace).watch() as events:
                async for told in events:
                    with self._news:
                        self._told.append({"type": str(told.type), "object": dict(told.work.to_dict())})
                        self._news.notify_all()

    def wait(self, wanted: Callable[[Json], bool], *, what: str, seconds: float) -> Json:
        deadline = time.monotonic() + seconds
        with self._news:
            while True:
                for told in self._told:
                    if wanted(told):
                        return told
                remaining = deadline - time.monotonic()
                assert remaining > 0, f"no {what} within {seconds} s; the watch told {_summary(self._told)}"
                self._news.wait(remaining)

    def close(self) -> None:
        with suppress(RuntimeError):  # the loop is closed already where the watch has failed
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)


def _summary(told: list[Json]) -> list[tuple[str, str]]:
    return [(each["type"], each["object"]["metadata"].get("name", "")) for each in told]
