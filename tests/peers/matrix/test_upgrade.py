"""From a Go Maestro to ours part by part, and back, while works live on: the cases of Maestro's own upgrade tests.

Every phase changes a Deployment through its work, an object that a work only reads, and a work inside a work; nothing
that exists is made anew by an upgrade.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import e2e_works as make
import peer_postgres
import pytest
from combination import Combination
from e2e_works import deployment, option, work
from kube_cluster import answer
from matrix_steps import feedback, let_it_finish
from peer_clients import Json
from stage import Ground, Stage, staged

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)
UPGRADE = (("go", "go", "go"), ("go", "python", "go"), ("go", "python", "python"), ("python", "python", "python"))
"""Client, server and agent of each phase: first the server is replaced, then the agent, then the client."""


@pytest.fixture(params=["up-grpc", "back-grpc", "up-mqtt", "back-mqtt"])
def phases(request: pytest.FixtureRequest) -> list[Combination]:
    way, broker = request.param.split("-")
    casts = UPGRADE if way == "up" else UPGRADE[::-1]
    return [Combination(client=client, server=server, agent=agent, broker=broker) for client, server, agent in casts]


@pytest.fixture
def stage(
    phases: list[Combination],
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
) -> Iterator[Stage]:
    name = f"upgraded{next(NUMBERS)}"
    with ground.cluster.client() as api:
        made = Stage(
            ground=ground,
            players=phases[0],
            database=postgres.create(name),
            consumer=name,
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with staged(made):
            yield made


def web(stage: Stage, replicas: int) -> Json:
    rule = option(stage, "deployments", "web", group="apps", feedback=".status.replicas")
    return work("web", deployment(stage, "web", replicas=replicas), options=(rule,))


def test_every_part_in_turn(stage: Stage, phases: list[Combination]) -> None:
    reader = option(stage, "configmaps", "outside", strategy="ReadOnly", feedback=".data.seen")
    reading = work("reading", make.read_only(stage, "ConfigMap", "outside"), options=(reader,))
    for each in (web(stage, 1), reading, make.nested(stage, "outer")):
        stage.client.create(stage.consumer, each)
    for name, value in (("web", 1), ("reading", "first"), ("outer", 1)):
        seen(stage, name, value)
    born = identities(stage)
    for number, players in enumerate(phases, 1):
        if number > 1:
            become(stage, players)
        change(stage, "web", web(stage, number + 1))
        seen(stage, "web", number + 1)
        stage.write_outside(f"phase {number}")
        seen(stage, "reading", f"phase {number}")
        change(stage, "outer", make.nested(stage, "outer", value=f"phase {number}"))
        seen(stage, "outer", number + 1)
        assert identities(stage) == born, "what lived before lives on"
    let_it_finish(stage)
    for name in ("web", "reading", "outer"):
        stage.client.delete(stage.consumer, name)
        stage.wait(lambda gone=name: stage.is_gone(gone), f"{name} to go")
    assert stage.object("deployments", "web") is None
    assert stage.object("configmaps", "outside") is not None


def become(stage: Stage, players: Combination) -> None:
    """Replace what differs, as an operator would: one part at a time, the others running."""
    old, stage.players = stage.players, players
    if old.server != players.server:
        stage.stop_server()
        stage.start_server()
    if old.agent != players.agent:
        stage.stop_agent()
        stage.start_agent()
    if old.client != players.client:
        stage.stop_client()
        stage.start_client()


def change(stage: Stage, name: str, wanted: Json) -> None:
    # Each try begins with what is stored: of one that was cut off only the answer may be lost.
    stage.wait(lambda: stage.client.patch(stage.consumer, stage.work(name), wanted), "a write")


def seen(stage: Stage, name: str, value: object) -> None:
    stage.wait(lambda: feedback(stage.work(name)).get("seen") == value, f"{name} to tell {value}")


def identities(stage: Stage) -> dict[str, str]:
    """Return the uids of what the works made and read, and of the agent's records of them."""
    found = {}
    for kind, name in (("deployments", "web"), ("manifestworks", "outer-inner"), ("configmaps", "outside")):
        live = stage.wait(lambda k=kind, n=name: stage.object(k, n), f"{kind}/{name}")
        found[f"{kind}/{name}"] = live["metadata"]["uid"]
    mine = {stage.work(name)["metadata"]["uid"] for name in ("web", "outer")}
    for each in answer(stage.api.get(make.RECORDS))["items"]:
        if each["spec"]["manifestWorkName"] in mine:
            found[each["metadata"]["name"]] = each["metadata"]["uid"]
    return found
