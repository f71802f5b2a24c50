"""The client without `await`: same answers, from any thread, and clean after an interrupt."""

import asyncio
import concurrent.futures
import signal
import subprocess
import sys
import threading

import harness
import pytest
from sdk_live import live_server as live_server
from test_sdk_lifecycle import work

from maestropy import EventType, Maestro, errors
from maestropy.sandbox.process import ServerProcess
from maestropy.store.dsn import Dsn


def client_of(server: ServerProcess) -> Maestro:
    return Maestro(
        environ={},
        api_url=f"http://127.0.0.1:{server.ports.rest}",
        grpc_url=f"127.0.0.1:{server.ports.sources}",
        source="sdk-test",
    )


def test_the_life_of_a_work_without_await(live_server: ServerProcess) -> None:
    with client_of(live_server) as client:
        client.consumers.create("c1")
        works = client.works("c1")
        assert works.apply(work("hello")).operation == "created"
        assert works.wait_for("hello", timeout=60).feedback("status") == {"x": 1}
        assert [each.name for each in works.list()] == ["hello"]
        with works.watch() as events:
            assert [(each.type, each.work.name) for each in [next(events)]] == [(EventType.ADDED, "hello")]
        for told in works.watch(bookmarks=True):
            if told.type is EventType.SYNCED:
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

        def live(number: int) -> str:
            mine = works if number % 2 else other.works("c1")
            mine.apply(work(f"w{number}"))
            return mine.wait_for(f"w{number}", timeout=60).name

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            names = set(pool.map(live, range(24)))
        assert len(names) == 24
        assert {each.name for each in works.list(page_size=7)} == names
        assert [thread.name for thread in threading.enumerate()].count("maestro-client") == 1


def test_ctrl_c_ends_a_wait_at_once(live_server: ServerProcess) -> None:
    # Said only once the main thread really blocks in the wait: an interrupt before that would prove nothing.
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


def test_a_client_beside_an_event_loop_of_the_program(database: Dsn) -> None:
    async def scenario() -> None:
        async with harness.in_process(database) as running:

            def live() -> list[str]:
                with Maestro(environ={}, api_url=running.rest, grpc_url=running.sources, source="sdk-test") as client:
                    client.consumers.create("c1")
                    client.works("c1").create(work("hello"))
                    return [each.name for each in client.works("c1").list()]

            assert await asyncio.to_thread(live) == ["hello"]

    asyncio.run(scenario())
