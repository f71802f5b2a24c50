"""The cases of Maestro's own end-to-end suite, with the Go client on every server and agent.

What that suite says of creating, updating, deleting, of agents and servers that go away and of certificates is in the
matrix; here is the rest.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import combination
import e2e_works as make
import peer_postgres
import pytest
from combination import Combination
from e2e_works import config_map, deployment, option, read_only, work
from matrix_steps import feedback, is_reported, let_it_finish, name_of
from peer_clients import Json, WorkClient
from stage import Ground, Stage, staged

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
) -> Iterator[Stage]:
    """One server and one agent for all cases; each case has works and a namespace of its own."""
    name = f"e2e{next(NUMBERS)}"
    with ground.cluster.client() as api:
        api.post("/api/v1/namespaces", json={"metadata": {"name": name}})
        stage = Stage(
            ground=ground,
            players=request.param,
            database=postgres.create(name),
            consumer=name,
            namespace=name,
            folder=tmp_path_factory.mktemp(name),
            api=api,
        )
        with staged(stage):
            yield stage
        api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def stage(running: Stage, namespace: str, show: Callable[[Path], None]) -> Stage:
    running.namespace = namespace
    assert running.server is not None
    assert running.agent is not None
    show(running.server.log)
    show(running.agent.log)
    return running


@pytest.fixture
def new(stage: Stage) -> Callable[[str], str]:
    """Return names that no other case uses."""
    number = next(NUMBERS)
    return lambda name: f"{name}-{number}"


def test_a_secret_that_is_only_read(stage: Stage, new: Callable[[str], str]) -> None:
    name = new("secret")
    secret = {"metadata": {"name": name}, "data": {"token": "dG9rZW4="}}
    stage.api.post(f"/api/v1/namespaces/{stage.namespace}/secrets", json=secret).raise_for_status()
    rule = option(stage, "secrets", name, strategy="ReadOnly", feedback=".data")
    stage.client.create(stage.consumer, work(name, read_only(stage, "Secret", name), options=(rule,)))
    wanted = '{"token":"dG9rZW4="}'
    stage.wait(lambda: feedback(stage.work(name)).get("seen") == wanted, "the Secret's data")
    delete(stage, name)
    assert stage.object("secrets", name) is not None


def test_a_nested_work_is_applied_once(stage: Stage, new: Callable[[str], str]) -> None:
    name = new("outer")
    stage.client.create(stage.consumer, make.nested(stage, name))
    stage.wait(lambda: is_reported(stage.work(name), generation=1), "the outer work")
    before = stage.object("manifestworks", f"{name}-inner")
    assert before is not None
    # Another work that goes all the way shows that the agent has been through its works again.
    other = new("other")
    stage.client.create(stage.consumer, work(other, config_map(stage, other)))
    stage.wait(lambda: is_reported(stage.work(other), generation=1), "another work")
    after = stage.object("manifestworks", f"{name}-inner")
    assert after is not None
    assert (before["metadata"]["generation"], after["metadata"]["generation"]) == (1, 1)
    delete(stage, name)
    stage.wait(lambda: stage.object("manifestworks", f"{name}-inner") is None, "the inner work to go")


def test_add_remove_and_replace_manifests(stage: Stage, new: Callable[[str], str]) -> None:
    skip_what_go_cannot("add, remove and replace manifests", stage)
    name = new("changing")
    first, second, third = (f"{name}-{letter}" for letter in "abc")
    stage.client.create(stage.consumer, work(name, config_map(stage, first)))
    stage.wait(lambda: stage.value(first) == "1", "the first object")
    for names in ((first, second), (second,), (third,)):
        old = stage.work(name)
        stage.client.patch(stage.consumer, old, work(name, *(config_map(stage, each) for each in names)))
        stage.wait(
            lambda wanted=set(names): {each for each in (first, second, third) if stage.value(each)} == wanted,
            f"exactly {names}",
        )
    delete(stage, name)


def test_two_sources_read_one_deployment(stage: Stage, new: Callable[[str], str]) -> None:
    name = new("shared")
    path = f"/apis/apps/v1/namespaces/{stage.namespace}/deployments"
    made = stage.api.post(path, json=deployment(stage, name)).raise_for_status().json()
    rule = option(stage, "deployments", name, group="apps", strategy="ReadOnly", feedback=".spec.replicas")
    wanted = work(name, read_only(stage, "Deployment", name, api_version="apps/v1"), options=(rule,))
    other = stage.new_client(f"{stage.source}-too")
    try:
        uids = [each.create(stage.consumer, wanted)["metadata"]["uid"] for each in (stage.client, other)]
        assert len(set(uids)) == 2
        for each in (stage.client, other):
            stage.wait(
                lambda by=each: feedback(by.get(stage.consumer, name)).get("seen") == 1, "what each of them reads"
            )
        kept = [make.records(stage, uid) for uid in uids]
        assert [len(each) for each in kept] == [1, 1]
        assert all(each[0].endswith(f"-{uid}") for each, uid in zip(kept, uids, strict=True))
        delete(stage, name)
        assert make.records(stage, uids[0]) == []
        assert make.records(stage, uids[1]) == kept[1]
        assert feedback(other.get(stage.consumer, name)).get("seen") == 1
        left = stage.object("deployments", name)
        assert left is not None
        assert left["metadata"]["uid"] == made["metadata"]["uid"]
        let_it_finish(stage)
        other.delete(stage.consumer, name)
    finally:
        other.close()


@pytest.fixture
def clients(stage: Stage) -> Iterator[Callable[[], WorkClient]]:
    """Start clients of the same source; in one client all watches of a cluster are the same watch."""
    with ExitStack() as stack:

        def start() -> WorkClient:
            made = stage.new_client(stage.source)
            stack.callback(made.close)
            assert isinstance(made, WorkClient)
            return made

        yield start


def test_watches_by_cluster_and_by_label(
    stage: Stage, new: Callable[[str], str], clients: Callable[[], WorkClient]
) -> None:
    name = new("watched")
    one, other = clients(), clients()
    everywhere, labelled = one.watch(""), other.watch("", selector=f"app={name}")
    here = one.watch(stage.consumer)
    stage.client.create(stage.consumer, work(new("unlabelled"), config_map(stage, new("unlabelled"))))
    stage.client.create(stage.consumer, work(name, config_map(stage, name), labels={"app": name}))
    for client, watch in ((one, everywhere), (one, here), (other, labelled)):
        client.wait_watched(watch, lambda told: is_about(told, name), what="the work", seconds=60)
    names = {name_of(line) for line in other.printed() if line.get("watch") == labelled}
    assert names == {name}, "a selector lets nothing else through"

    # A Go client that is told of a change while a watch ends may die of it.
    stage.wait(lambda: is_reported(stage.work(new("unlabelled")), generation=1), "the other work's status")
    let_it_finish(stage)
    one.say({"id": "stop", "op": "unwatch", "name": here})
    one.wait(lambda line: line.get("id") == "stop", what="the end of the watch")
    again = one.watch(stage.consumer)
    one.wait_watched(again, lambda told: is_about(told, name), what="what there is, told to a new watch", seconds=60)
    delete(stage, name)
    one.wait_watched(again, lambda told: is_end(told, name), what="the end", seconds=60)


def is_about(told: Json, name: str) -> bool:
    return name_of(told) == name and is_reported(told["object"], generation=1)


def is_end(told: Json, name: str) -> bool:
    return bool(told["type"] == "DELETED" and name_of(told) == name)


def test_created_and_deleted_at_once(
    stage: Stage, new: Callable[[str], str], clients: Callable[[], WorkClient]
) -> None:
    skip_what_go_cannot("created and deleted at once", stage)
    name = new("brief")
    client = clients()
    watch = client.watch(stage.consumer)
    client.create(stage.consumer, work(name, config_map(stage, name)))
    client.delete(stage.consumer, name)
    stage.wait(lambda: stage.is_gone(name), "the work to go")
    stage.wait(lambda: stage.value(name) is None, "the object to go")
    client.wait_watched(watch, lambda told: is_end(told, name), what="the end", seconds=60)


def skip_what_go_cannot(step: str, stage: Stage) -> None:
    reason = combination.limit_of(step, stage.players)
    if reason is not None:
        pytest.skip(f"not supported by Go: {reason}")


def delete(stage: Stage, name: str) -> None:
    let_it_finish(stage)
    stage.client.delete(stage.consumer, name)
    stage.wait(lambda: stage.is_gone(name), f"{name} to go")
