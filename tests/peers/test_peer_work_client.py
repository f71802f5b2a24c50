"""The Go work client and a Go agent, through a server: what every Maestro server has to do for them.

Run against the Go server these tests prove the harness; against ours they prove that nobody notices the difference.
"""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.peers.peer_clients import Agent, Json, Refused, WorkClient
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

StartAgent = Callable[[str], Agent]


def config_map_work(name: str, *, value: str = "1", labels: dict[str, str] | None = None) -> Json:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"value": value},
    }
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"workload": {"manifests": [config_map]}},
    }


def conditions(work: Json) -> dict[str, Any]:
    return {each["type"]: each for each in work.get("status", {}).get("conditions", [])}


def available_at(work: Json, generation: int) -> bool:
    available = conditions(work).get("Available", {})
    return bool(available.get("status") == "True" and available.get("observedGeneration") == generation)


def wait_available(client: WorkClient, namespace: str, name: str, *, generation: int) -> Json:
    def look() -> Json | None:
        work = client.get(namespace, name)
        return work if available_at(work, generation) else None

    return wait_for(look, what=f"{name} to be available at generation {generation}")


def wait_gone(client: WorkClient, namespace: str, name: str) -> None:
    def gone() -> bool:
        try:
            client.get(namespace, name)
        except Refused as refused:
            return refused.reason == "NotFound"
        return False

    wait_for(gone, what=f"{name} to be gone")


def expected_uid(source: str, namespace: str, name: str) -> str:
    identity = f"{source}-manifestworks.work.open-cluster-management.io-{namespace}-{name}"
    return str(uuid.uuid5(uuid.NAMESPACE_OID, identity))


def test_created_work_reaches_the_agent_and_its_status_comes_back(
    client: WorkClient, consumer: str, start_agent: StartAgent
) -> None:
    agent = start_agent(consumer)
    created = client.create(consumer, config_map_work("first", labels={"app": "x"}))
    uid = created["metadata"]["uid"]

    spec = agent.wait_event("received", type_ends="spec.create_request", resource=uid, version=1)
    work = wait_available(client, consumer, "first", generation=1)

    assert spec["source"] == "maestro"
    assert spec["clustername"] == consumer
    assert f'"name":"{uid}"' in spec["metadata"], "agents know a work by its resource id"
    assert spec["data"]["manifests"][0]["data"] == {"value": "1"}
    assert work["metadata"]["uid"] == uid == expected_uid(client.source, consumer, "first")
    assert work["metadata"]["generation"] == 1
    assert work["metadata"]["labels"] == {"app": "x"}
    assert conditions(work)["Applied"]["status"] == "True"


def test_update_raises_the_version_and_a_stale_one_is_refused(
    client: WorkClient, consumer: str, start_agent: StartAgent
) -> None:
    agent = start_agent(consumer)
    client.create(consumer, config_map_work("changing"))
    first = wait_available(client, consumer, "changing", generation=1)

    client.patch(consumer, first, config_map_work("changing", value="2"))
    agent.wait_event("received", type_ends="spec.update_request", resource=first["metadata"]["uid"], version=2)
    second = wait_available(client, consumer, "changing", generation=2)

    assert second["spec"]["workload"]["manifests"][0]["data"] == {"value": "2"}
    with pytest.raises(Refused, match="the resource version is not the latest, the latest version: 2") as refused:
        client.patch(consumer, first, config_map_work("changing", value="3"))
    assert refused.value.reason == "PublishError"
    assert client.get(consumer, "changing")["metadata"]["generation"] == 2


def test_deleted_work_goes_to_the_end_and_its_name_can_be_used_anew(
    client: WorkClient, consumer: str, start_agent: StartAgent
) -> None:
    agent = start_agent(consumer)
    uid = client.create(consumer, config_map_work("again"))["metadata"]["uid"]
    wait_available(client, consumer, "again", generation=1)

    client.delete(consumer, "again")
    told = agent.wait_event("received", type_ends="spec.delete_request", resource=uid)
    wait_gone(client, consumer, "again")
    assert told["deletiontimestamp"]

    recreated = client.create(consumer, config_map_work("again", value="new"))
    work = wait_available(client, consumer, "again", generation=1)
    assert recreated["metadata"]["uid"] == uid
    assert work["spec"]["workload"]["manifests"][0]["data"] == {"value": "new"}


def test_a_deleting_work_stays_visible_and_closed_until_the_agent_reports(
    client: WorkClient, consumer: str, start_agent: StartAgent
) -> None:
    agent = start_agent(consumer)
    client.create(consumer, config_map_work("leaving"))
    before = wait_available(client, consumer, "leaving", generation=1)

    agent.hold()
    client.delete(consumer, "leaving")
    deleting = wait_for(
        lambda: (work := client.get(consumer, "leaving"))["metadata"].get("deletionTimestamp") and work,
        what="a deletion timestamp",
    )
    with pytest.raises(Refused, match="the resource is under deletion"):
        client.patch(consumer, before, config_map_work("leaving", value="2"))
    with pytest.raises(Refused) as refused:
        client.create(consumer, config_map_work("leaving"))
    agent.release()
    wait_gone(client, consumer, "leaving")

    assert deleting["metadata"]["generation"] == 1
    assert refused.value.reason == "AlreadyExists"


def test_watch_tells_of_every_change_and_of_the_end(client: WorkClient, consumer: str, start_agent: StartAgent) -> None:
    agent = start_agent(consumer)
    watch = client.watch(consumer)
    uid = client.create(consumer, config_map_work("watched"))["metadata"]["uid"]
    client.wait_watched(watch, lambda event: available_at(event["object"], 1), what="the first status")

    agent.report(uid, "something new")
    changed = client.wait_watched(
        watch,
        lambda event: conditions(event["object"]).get("Available", {}).get("message") == "something new",
        what="the changed status",
    )
    client.delete(consumer, "watched")
    last = client.wait_watched(watch, lambda event: event["type"] == "DELETED", what="the end")

    assert changed["type"] == "MODIFIED"
    assert changed["object"]["metadata"]["name"] == "watched", "sources know a work by the name they gave it"
    assert changed["object"]["spec"]["workload"]["manifests"][0]["data"] == {"value": "1"}
    assert last["object"]["metadata"]["uid"] == uid


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param("", {"a", "b", "c", "bare"}, id="none"),
        pytest.param("app=a", {"a"}, id="equal"),
        pytest.param("app=a,tier==web", {"a"}, id="two-equal"),
        pytest.param("app=a,tier==db", set(), id="two-contradicting"),
        # A missing label is not unequal here, unlike in Kubernetes: the server asks SQL.
        pytest.param("app!=a", {"b", "c"}, id="unequal"),
        pytest.param("app in (a,b)", {"a", "b"}, id="in"),
        pytest.param("app notin (a,b)", {"c"}, id="not-in"),
        pytest.param("tier", {"a", "b", "c"}, id="exists"),
    ],
)
def test_list_by_label(client: WorkClient, consumer: str, selector: str, found: set[str]) -> None:
    for name in ("a", "b", "c"):
        client.create(consumer, config_map_work(name, labels={"app": name, "tier": "web"}))
    client.create(consumer, config_map_work("bare"))

    works, _ = client.list(consumer, selector=selector)

    assert {work["metadata"]["name"] for work in works} == found


def test_list_page_by_page(client: WorkClient, consumer: str) -> None:
    names = {f"work{number}" for number in range(5)}
    for name in names:
        client.create(consumer, config_map_work(name))

    seen: list[str] = []
    token = ""
    while True:
        page, token = client.list(consumer, limit=2, token=token)
        assert len(page) <= 2
        seen += [work["metadata"]["name"] for work in page]
        if not token:
            break

    assert sorted(seen) == sorted(names)


def test_an_agent_that_was_away_catches_up(client: WorkClient, consumer: str, start_agent: StartAgent) -> None:
    agent = start_agent(consumer)
    for name in ("updated", "removed"):
        client.create(consumer, config_map_work(name))
    old = {name: wait_available(client, consumer, name, generation=1) for name in ("updated", "removed")}

    agent.close()
    client.patch(consumer, old["updated"], config_map_work("updated", value="2"))
    client.delete(consumer, "removed")
    client.create(consumer, config_map_work("added"))
    assert client.get(consumer, "removed")["metadata"]["deletionTimestamp"]
    start_agent(consumer)

    wait_available(client, consumer, "updated", generation=2)
    wait_available(client, consumer, "added", generation=1)
    wait_gone(client, consumer, "removed")


def test_creating_a_work_twice_is_refused(client: WorkClient, consumer: str) -> None:
    client.create(consumer, config_map_work("once"))

    with pytest.raises(Refused) as refused:
        client.create(consumer, config_map_work("once"))

    assert refused.value.reason == "AlreadyExists"


def test_unknown_consumer_is_rejected(client: WorkClient) -> None:
    with pytest.raises(Refused, match='violates foreign key constraint "fk_resources_consumers"') as refused:
        client.create("nobody", config_map_work("lost"))

    assert refused.value.reason == "PublishError"


def test_getting_and_deleting_what_never_was(client: WorkClient, consumer: str) -> None:
    client.delete(consumer, "never")
    with pytest.raises(Refused) as refused:
        client.get(consumer, "never")
    assert (refused.value.reason, refused.value.code) == ("NotFound", 404)
