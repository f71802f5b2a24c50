"""The blocking client: same results, from any thread, and clean after an interrupt."""

import asyncio
import concurrent.futures
import signal
import subprocess
import sys
import threading

import pytest

from maestropy import EventType, Maestro, errors
from maestropy.sandbox.server_process import ServerProcess
from maestropy.store.dsn import Dsn
from tests.stack import harness
from tests.stack.sdk_live import live_server as live_server
from tests.stack.test_sdk_lifecycle import work


def client_of(server: ServerProcess) -> Maestro:
    return Maestro(
        environ={},
        api_url=f"http://127.0.0.1:{server.ports.rest}",
        grpc_url=f"127.0.0.1:{server.ports.sources}",
        source="sdk-test",
    )


def test_work_is_managed_without_await(live_server: ServerProcess) -> None:
    with client_of(live_server) as client:
        client.consumers.create("c1")
        works = client.works("c1")
        assert works.apply(work("hello")).operation == "created"
        assert works.wait_for("hello", timeout=60).feedback("status") == {"x": 1}
        assert [stored.name for stored in works.list()] == ["hello"]
        with works.watch() as events:
            assert (first := next(events)).type is EventType.ADDED
            assert first.work.name == "hello"
        for event in works.watch(bookmarks=True):
            if event.type is EventType.SYNCED:
                break
        works.delete("hello", wait=True, timeout=60)
        with pytest.raises(errors.NotFound):
            works.get("hello")
        with pytest.raises(errors.Invalid, match="name one"):
            client.all_works().get("hello")
    assert not [thread for thread in threading.enumerate() if thread.name == "maestro-client"]


def test_threads_share_a_client_and_clients_share_a_loop(live_server: ServerProcess) -> None:
    with client_of(live_server) as client, client_of(live_server) as other:
        client.consumers.create("c1")
        works = client.works("c1")

        def apply_and_wait(number: int) -> str:
            own_works = works if number % 2 else other.works("c1")
            own_works.apply(work(f"w{number}"))
            return own_works.wait_for(f"w{number}", timeout=60).name

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            names = set(pool.map(apply_and_wait, range(24)))
        assert len(names) == 24
        assert {stored.name for stored in works.list(page_size=7)} == names
        assert [thread.name for thread in threading.enumerate()].count("maestro-client") == 1


def test_interrupt_ends_a_blocking_wait(live_server: ServerProcess) -> None:
    # The interrupt must arrive while the main thread blocks in the wait.
    script = (
        "import sys, threading, time\n"
        "from maestropy import Maestro\n"
        "def say_when_blocked(main):\n"
        "    while sys._current_frames()[main].f_code.co_name != 'run':\n"
        "        time.sleep(0.01)\n"
        "    print('waiting', flush=True)\n"
        "with Maestro(source='s') as client:\n"
        "    events = client.works('c1').watch(bookmarks=True)\n"
        "    next(events)\n"
        "    try:\n"
        "        threading.Thread(target=say_when_blocked, args=[threading.get_ident()]).start()\n"
        "        next(events)\n"
        "    except KeyboardInterrupt:\n"
        "        print('interrupted', flush=True)\n"
    )
    environ = {
        "MAESTRO_API_URL": f"http://127.0.0.1:{live_server.ports.rest}",
        "MAESTRO_GRPC_URL": f"127.0.0.1:{live_server.ports.sources}",
    }
    with subprocess.Popen(
        [sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


async def test_blocking_client_beside_a_running_event_loop(database: Dsn) -> None:
    async with harness.in_process(database) as running:

        def create_and_list() -> list[str]:
            with Maestro(environ={}, api_url=running.rest, grpc_url=running.sources, source="sdk-test") as client:
                client.consumers.create("c1")
                client.works("c1").create(work("hello"))
                return [stored.name for stored in client.works("c1").list()]

        assert await asyncio.to_thread(create_and_list) == ["hello"]
