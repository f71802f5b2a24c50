"""A process that is forked while a client is open: calls raise at once, and the process can create its own client."""

import os
import subprocess
import sys

import pytest

from maestropy.sdk._connection.connections import ReloadingConnection
from maestropy.sdk.errors import MaestroError

FORKED = """
import os, warnings
from maestropy import Maestro, errors

warnings.simplefilter("ignore")
options = dict(api_url="http://127.0.0.1:1", grpc_url="127.0.0.1:1", source="test", timeout=1)
client = Maestro(**options)
works = client.works("c")
stream = works.list()
child = os.fork()
if child == 0:
    for call in (lambda: works.get("a"), lambda: next(stream)):
        try:
            call()
        except errors.MaestroError as error:
            print(error, flush=True)
    stream.close()
    client.close()
    own = Maestro(**options)
    try:
        own.works("").get("a")
    except errors.Invalid as error:
        print(error.reason, flush=True)
    own.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
client.close()
print("parent closed")
"""

INHERITED = "the client was created before this process was forked, and its thread has stayed in the parent; create the"


def test_a_forked_process_gets_an_error_and_not_a_wait_without_end() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    first, second, own, parent = done.stdout.splitlines() or [done.stderr] * 4
    assert first.startswith(INHERITED)
    assert second.startswith(INHERITED)
    assert own == "these are the works of all consumers"
    assert parent == "parent closed"
    assert done.returncode == 0, done.stderr


async def test_a_connection_that_was_opened_before_a_fork_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def close(_: object) -> None:
        return

    opened: ReloadingConnection[object] = ReloadingConnection(object, close=close, files=())
    unused: ReloadingConnection[object] = ReloadingConnection(object, close=close, files=())
    opened.current()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(
        MaestroError, match=r"was used before this process was forked.*; create the client after the fork"
    ):
        opened.current()
    # A client that was not used before belongs to the process that uses it first.
    assert unused.current() is unused.current()
