"""The cases of Maestro's own end-to-end suite, with the Go client on every server and agent.

What that suite says of creating, updating, deleting, of agents and servers that go away and of certificates is in the
matrix; here is the rest.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.peers import peer_build, peer_postgres
from tests.peers.matrix import combination
from tests.peers.matrix import e2e_works as make
from tests.peers.matrix.combination import Combination
from tests.peers.matrix.e2e_works import config_map, deployment, option, read_only, work
from tests.peers.matrix.matrix_steps import feedback, is_reported, let_it_finish, name_of
from tests.peers.matrix.rig import Ground, Rig, running_rig
from tests.peers.peer_clients import Json, WorkClient

pytestmark = pytest.mark.peers
NUMBERS = itertools.count(1)
CASTS = [
    Combination(client="go", server=server, agent=agent, broker="grpc")
    for server, agent in itertools.product(combination.KINDS, combination.KINDS)
]


@pytest.fixture(scope="module", params=CASTS, ids=str)
def running(
    request: pytest.FixtureRequest,
    ground: Ground,
    postgres: peer_postgres.Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Rig]:
    """One server and one agent for all cases; each case has works and a namespace of its own."""
    name = f"e2e{next(NUMBERS)}"
    with ground.cluster.client() as api:
        api.post("/api/v1/namespaces", json={"metadata": {"name": name}})
        rig = Rig(
            ground=ground,
            players=request.param,
            database=postgres.create(name),
            consumer=name,
            namespace=name,
            folder=tmp_path_factory.mktemp(name),
            api=api,
            # Over gRPC a server connects to nobody, so the newest need not be one that reconnects at once.
            go_program=ground.programs.newest,
        )
        with running_rig(rig):
            yield rig
        api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def rig(running: Rig, namespace: str, show: Callable[[Path], None]) -> Rig:
    running.namespace = namespace
    assert running.server is not None
    assert running.agent is not None
    show(running.server.log)
    show(running.agent.log)
    return running


@pytest.fixture
def new(rig: Rig) -> Callable[[str], str]:
    """Return names that no other case uses."""
    number = next(NUMBERS)
    return lambda name: f"{name}-{number}"


def test_a_secret_that_is_only_read(rig: Rig, new: Callable[[str], str]) -> None:
    name = new("secret")
    secret = {"metadata": {"name": name}, "data": {"token": "dG9rZW4="}}
    rig.api.post(f"/api/v1/namespaces/{rig.namespace}/secrets", json=secret).raise_for_status()
    rule = option(rig, "secrets", name, strategy="ReadOnly", feedback=".data")
    rig.client.create(rig.consumer, work(name, read_only(rig, "Secret", name), options=(rule,)))
    wanted = '{"token":"dG9rZW4="}'
    rig.wait(lambda: feedback(rig.work(name)).get("seen") == wanted, "the Secret's data")
    delete(rig, name)
    assert rig.object("secrets", name) is not None


def test_a_nested_work_is_applied_once(rig: Rig, new: Callable[[str], str]) -> None:
    name = new("outer")
    rig.client.create(rig.consumer, make.nested(rig, name))
    rig.wait(lambda: is_reported(rig.work(name), generation=1), "the outer work")
    before = rig.object("manifestworks", f"{name}-inner")
    assert before is not None
    # Another work that goes all the way shows that the agent has been through its works again.
    other = new("other")
    rig.client.create(rig.consumer, work(other, config_map(rig, other)))
    rig.wait(lambda: is_reported(rig.work(other), generation=1), "another work")
    after = rig.object("manifestworks", f"{name}-inner")
    assert after is not None
    assert (before["metadata"]["generation"], after["metadata"]["generation"]) == (1, 1)
    delete(rig, name)
    rig.wait(lambda: rig.object("manifestworks", f"{name}-inner") is None, "the inner work to go")


def test_add_remove_and_replace_manifests(rig: Rig, new: Callable[[str], str]) -> None:
    if rig.players.server == "go" and rig.ground.programs.newest_version == peer_build.maestro_version():
        pytest.skip("the pinned Go server refuses updates that change which manifests a bundle has; newer ones do not")
    name = new("changing")
    first, second, third = (f"{name}-{letter}" for letter in "abc")
    rig.client.create(rig.consumer, work(name, config_map(rig, first)))
    rig.wait(lambda: rig.value(first) == "1", "the first object")
    for names in ((first, second), (second,), (third,)):
        let_it_finish(rig)  # a Go agent may lose an update that crosses its own status
        old = rig.work(name)
        rig.client.patch(rig.consumer, old, work(name, *(config_map(rig, each) for each in names)))
        rig.wait(
            functools.partial(
                lambda wanted: {each for each in (first, second, third) if rig.value(each)} == wanted, set(names)
            ),
            f"exactly {names}",
        )
    delete(rig, name)


def test_two_sources_read_one_deployment(rig: Rig, new: Callable[[str], str]) -> None:
    name = new("shared")
    path = f"/apis/apps/v1/namespaces/{rig.namespace}/deployments"
    made = rig.api.post(path, json=deployment(rig, name)).raise_for_status().json()
    rule = option(rig, "deployments", name, group="apps", strategy="ReadOnly", feedback=".spec.replicas")
    wanted = work(name, read_only(rig, "Deployment", name, api_version="apps/v1"), options=(rule,))
    other = rig.new_client(f"{rig.source}-too")
    try:
        uids = [each.create(rig.consumer, wanted)["metadata"]["uid"] for each in (rig.client, other)]
        assert len(set(uids)) == 2
        for each in (rig.client, other):
            rig.wait(lambda: feedback(each.get(rig.consumer, name)).get("seen") == 1, "what each of them reads")
        kept = [make.records(rig, uid) for uid in uids]
        assert [len(each) for each in kept] == [1, 1]
        assert all(each[0].endswith(f"-{uid}") for each, uid in zip(kept, uids, strict=True))
        delete(rig, name)
        assert make.records(rig, uids[0]) == []
        assert make.records(rig, uids[1]) == kept[1]
        assert feedback(other.get(rig.consumer, name)).get("seen") == 1
        left = rig.object("deployments", name)
        assert left is not None
        assert left["metadata"]["uid"] == made["metadata"]["uid"]
        let_it_finish(rig)
        other.delete(rig.consumer, name)
    finally:
        other.close()


@pytest.fixture
def clients(rig: Rig) -> Iterator[Callable[[], WorkClient]]:
    """Start clients of the same source; in one client all watches of a cluster are the same watch."""
    with ExitStack() as stack:

        def start() -> WorkClient:
            made = rig.new_client(rig.source)
            stack.callback(made.close)
            assert isinstance(made, WorkClient)
            return made

        yield start


def test_watches_by_cluster_and_by_label(
    rig: Rig, new: Callable[[str], str], clients: Callable[[], WorkClient]
) -> None:
    name = new("watched")
    one, other = clients(), clients()
    everywhere, labelled = one.watch(""), other.watch("", selector=f"app={name}")
    here = one.watch(rig.consumer)
    rig.client.create(rig.consumer, work(new("unlabelled"), config_map(rig, new("unlabelled"))))
    rig.client.create(rig.consumer, work(name, config_map(rig, name), labels={"app": name}))
    for client, watch in ((one, everywhere), (one, here), (other, labelled)):
        client.wait_watched(watch, lambda told: is_about(told, name), what="the work", seconds=60)
    names = {name_of(line) for line in other.printed() if line.get("watch") == labelled}
    assert names == {name}, "a selector lets nothing else through"

    # A Go client that is told of a change while a watch ends may die of it.
    rig.wait(lambda: is_reported(rig.work(new("unlabelled")), generation=1), "the other work's status")
    let_it_finish(rig)
    one.say({"id": "stop", "op": "unwatch", "name": here})
    one.wait(lambda line: line.get("id") == "stop", what="the end of the watch")
    again = one.watch(rig.consumer)
    one.wait_watched(again, lambda told: is_about(told, name), what="what there is, told to a new watch", seconds=60)
    delete(rig, name)
    one.wait_watched(again, lambda told: is_end(told, name), what="the end", seconds=60)


def is_about(told: Json, name: str) -> bool:
    return name_of(told) == name and is_reported(told["object"], generation=1)


def is_end(told: Json, name: str) -> bool:
    return bool(told["type"] == "DELETED" and name_of(told) == name)


def test_created_and_deleted_at_once(rig: Rig, new: Callable[[str], str], clients: Callable[[], WorkClient]) -> None:
    skip_what_go_cannot("created and deleted at once", rig)
    name = new("brief")
    client = clients()
    watch = client.watch(rig.consumer)
    client.create(rig.consumer, work(name, config_map(rig, name)))
    client.delete(rig.consumer, name)
    rig.wait_until_gone(name)
    rig.wait(lambda: rig.value(name) is None, "the object to go")
    client.wait_watched(watch, lambda told: is_end(told, name), what="the end", seconds=60)


def skip_what_go_cannot(step: str, rig: Rig) -> None:
    reason = combination.limit_of(step, rig.players)
    if reason is not None:
        pytest.skip(reason)


def delete(rig: Rig, name: str) -> None:
    let_it_finish(rig)
    rig.client.delete(rig.consumer, name)
    rig.wait_until_gone(name)
