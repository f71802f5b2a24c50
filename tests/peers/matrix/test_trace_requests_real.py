"""`maestro trace requests` on logs that Go programs wrote: what it says is what we know happened."""

import dataclasses
import itertools
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.peers import peer_postgres
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.matrix_steps import let_it_finish, plain
from tests.peers.matrix.rig import Ground, Rig, running_rig
from tests.peers.peer_clients import Json, Refused, rest
from tests.peers.peer_servers import PYTHON_CLI
from tests.waiting import wait_for

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)
STAGE_SECONDS = 2.0


@pytest.fixture(params=["grpc-v2", "grpc-v4", "mqtt-v2", "mqtt-v4"])
def rig(
    request: pytest.FixtureRequest,
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
) -> Iterator[Rig]:
    """Go server, Go agent and Go client, with a broker and a verbosity."""
    broker, verbosity = request.param.split("-v")
    number = next(NUMBERS)
    with ground.cluster.client() as api:
        made = Rig(
            ground=dataclasses.replace(ground, verbosity=int(verbosity)),
            players=Combination(client="go", server="go", agent="go", broker=broker),
            database=postgres.create(f"traced{number}"),
            consumer=f"traced{number}",
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with running_rig(made) as running:
            yield running


def broken(rig: Rig) -> Json:
    """Return a work that the API server refuses."""
    work = plain(rig, "broken")
    work["spec"]["workload"]["manifests"][0] |= {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1}}
    return work


def test_verdicts(rig: Rig) -> None:
    uids = act(rig)
    found = traced(rig)

    def verdict(name: str, action: str, version: int) -> str:
        said: list[str] = [
            each["verdict"]
            for each in found
            if (each["key"]["resourceId"], each["key"]["action"]) == (uids[name], action)
            and (action == "delete" or each["key"]["version"] == version)
        ]
        assert len(said) == 1, f"{name} {action} v{version}: {summary(found)}"
        return said[0]

    assert {
        "created": verdict("done", "create", 1),
        "updated": verdict("done", "update", 2),
        "overtaken while the agent was away": verdict("done", "update", 3),
        "newest when the agent came back": verdict("done", "update", 4),
        "deleted": verdict("done", "delete", 4),
        "refused by the API server": verdict("broken", "create", 1),
        "for a cluster without an agent": verdict("lonely", "create", 1),
    } == {
        "created": "complete",
        "updated": "complete",
        "overtaken while the agent was away": "superseded",
        "newest when the agent came back": "complete",
        "deleted": "complete",
        "refused by the API server": "failed",
        "for a cluster without an agent": "incomplete",
    }, summary(found)
    # What the version of a refused update would have been, nobody knows.
    refused = [each for each in found if each["key"]["action"] == "update" and each["verdict"] == "failed"]
    assert [each["failedStage"] for each in refused] == [2], summary(found)


def act(rig: Rig) -> dict[str, str]:
    """Make the requests; return the ids of the works."""
    client, consumer = rig.client, rig.consumer
    lonely = f"{consumer}-lonely"
    assert rig.server is not None
    rest(rig.server, "POST", "/consumers", {"name": lonely})
    client.watch("")
    uids = {"lonely": client.create(lonely, plain(rig, "lonely"))["metadata"]["uid"]}
    for work in (plain(rig, "done"), broken(rig)):
        uids[work["metadata"]["name"]] = client.create(consumer, work)["metadata"]["uid"]
    first = settled(rig, 1)
    let_it_finish(rig)  # a Go agent may lose an update that crosses its own status
    client.patch(consumer, first, plain(rig, "done", value="2"))
    settled(rig, 2)
    with pytest.raises(Refused):
        client.patch(consumer, first, plain(rig, "done", value="stale"))
    rig.wait(lambda: condition(rig.work("broken"), "Applied") == "False", "the refusal of the API server")
    let_it_finish(rig)  # a report that the end of the agent cuts off is one that failed, and the trace would say so
    rig.stop_agent()
    for version, value in ((2, "overtaken"), (3, "newest")):
        old = rig.work("done")
        assert old["metadata"]["generation"] == version
        client.patch(consumer, old, plain(rig, "done", value=value))
    rig.start_agent()
    settled(rig, 4)
    let_it_finish(rig)
    client.delete(consumer, "done")
    rig.wait_until_gone("done")
    return uids


def settled(rig: Rig, generation: int) -> Json:
    """Wait until the agent's status of that generation has come back."""

    def look() -> Json | None:
        work = rig.work("done")
        found = [each for each in work.get("status", {}).get("conditions", []) if each["type"] == "Available"]
        return work if found and found[0].get("observedGeneration") == generation else None

    return rig.wait(look, f"the status of generation {generation}")


def condition(work: Json, kind: str) -> str:
    conditions = work.get("status", {}).get("conditions", [])
    return next((str(each["status"]) for each in conditions if each["type"] == kind), "")


def traced(rig: Rig) -> list[dict[str, Any]]:
    """Trace the logs, once they cover the time in which something could still have come."""
    assert rig.server is not None
    assert rig.agent is not None
    logs = rig.folder / "logs"
    logs.mkdir()
    ended = time.monotonic()
    wait_for(lambda: time.monotonic() - ended > STAGE_SECONDS, what="the time in which something could have come")
    rest(rig.server, "GET", "/consumers")  # is logged, and so shows that the log covers this time
    shutil.copy(rig.server.log, logs / "maestro-0.log")
    shutil.copy(rig.agent.log, logs / "maestro-agent-0.log")
    command = [*PYTHON_CLI, "trace", "requests", str(logs), "-o", "json", "--top=0", f"--stage-timeout={STAGE_SECONDS}"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.stdout, done.stderr.decode()
    found: list[dict[str, Any]] = json.loads(done.stdout)["requests"]
    return found


def summary(found: list[dict[str, Any]]) -> str:
    lines = []
    for each in found:
        key = each["key"]
        states = " ".join(stage["state"] for stage in each["stages"])
        lines.append(f"{key['workName']} {key['action']} v{key['version']}: {each['verdict']} ({states})")
    return "\n".join(lines)
