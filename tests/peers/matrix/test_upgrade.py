"""From a Go Maestro to ours part by part, and back, while works live on: the cases of Maestro's own upgrade tests.

Every phase changes a Deployment through its work, an object that a work only reads, and a work inside a work; nothing
that exists is made anew by an upgrade.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.peers import peer_postgres
from tests.peers.kube_cluster import answer
from tests.peers.matrix import e2e_works as make
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.e2e_works import deployment, option, work
from tests.peers.matrix.matrix_steps import feedback, let_it_finish
from tests.peers.matrix.rig import Ground, Rig, running_rig
from tests.peers.peer_clients import Json

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
def rig(
    phases: list[Combination],
    ground: Ground,
    postgres: peer_postgres.Cluster,
    namespace: str,
    tmp_path: Path,
    show: Callable[[Path], None],
) -> Iterator[Rig]:
    name = f"upgraded{next(NUMBERS)}"
    with ground.cluster.client() as api:
        made = Rig(
            ground=ground,
            players=phases[0],
            database=postgres.create(name),
            consumer=name,
            namespace=namespace,
            folder=tmp_path,
            api=api,
            on_log=show,
        )
        with running_rig(made):
            yield made


def web(rig: Rig, replicas: int) -> Json:
    rule = option(rig, "deployments", "web", group="apps", feedback=".status.replicas")
    return work("web", deployment(rig, "web", replicas=replicas), options=(rule,))


def test_every_part_in_turn(rig: Rig, phases: list[Combination]) -> None:
    reader = option(rig, "configmaps", "outside", strategy="ReadOnly", feedback=".data.seen")
    reading = work("reading", make.read_only(rig, "ConfigMap", "outside"), options=(reader,))
    for each in (web(rig, 1), reading, make.nested(rig, "outer")):
        rig.client.create(rig.consumer, each)
    for name, value in (("web", 1), ("reading", "first"), ("outer", 1)):
        seen(rig, name, value)
    born = identities(rig)
    for number, players in enumerate(phases, 1):
        if number > 1:
            become(rig, players)
        change(rig, "web", web(rig, number + 1))
        seen(rig, "web", number + 1)
        rig.write_outside(f"phase {number}")
        seen(rig, "reading", f"phase {number}")
        change(rig, "outer", make.nested(rig, "outer", value=f"phase {number}"))
        seen(rig, "outer", number + 1)
        assert identities(rig) == born, "what lived before lives on"
    let_it_finish(rig)
    for name in ("web", "reading", "outer"):
        rig.client.delete(rig.consumer, name)
        rig.wait_until_gone(name)
    assert rig.object("deployments", "web") is None
    assert rig.object("configmaps", "outside") is not None


def become(rig: Rig, players: Combination) -> None:
    """Replace what differs, as an operator would: one part at a time, the others running."""
    old, rig.players = rig.players, players
    if old.server != players.server:
        rig.stop_server()
        rig.start_server()
    if old.agent != players.agent:
        rig.stop_agent()
        rig.start_agent()
    if old.client != players.client:
        rig.stop_client()
        rig.start_client()


def change(rig: Rig, name: str, wanted: Json) -> None:
    let_it_finish(rig)  # a Go agent may lose an update that crosses its own status, such as those after its start
    # Each try begins with what is stored: of one that was cut off only the answer may be lost.
    rig.wait(lambda: rig.client.patch(rig.consumer, rig.work(name), wanted), "a write")


def seen(rig: Rig, name: str, value: object) -> None:
    rig.wait(lambda: feedback(rig.work(name)).get("seen") == value, f"{name} to tell {value}")


def identities(rig: Rig) -> dict[str, str]:
    """Return the uids of what the works made and read, and of the agent's records of them."""
    found = {}
    for kind, name in (("deployments", "web"), ("manifestworks", "outer-inner"), ("configmaps", "outside")):
        live = rig.wait(lambda: rig.object(kind, name), f"{kind}/{name}")
        found[f"{kind}/{name}"] = live["metadata"]["uid"]
    mine = {rig.work(name)["metadata"]["uid"] for name in ("web", "outer")}
    for each in answer(rig.api.get(make.RECORDS))["items"]:
        if each["spec"]["manifestWorkName"] in mine:
            found[each["metadata"]["name"]] = each["metadata"]["uid"]
    return found
