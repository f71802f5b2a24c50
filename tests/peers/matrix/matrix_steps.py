"""What every combination has to do, step by step; each step builds on those before it and says nothing of who plays."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.peers.kube_agents import wait_until_silent
from tests.peers.matrix.rig import PATIENCE, Rig
from tests.peers.peer_clients import Json, Refused
from tests.waiting import wait_for

Step = Callable[[Rig], None]
Written = TypeVar("Written")
NOT_READY = "the cloudevents client is not ready"
REFUSED = re.compile(r"client is disconnected|failed to subscribe|reconnect failed|failed to connect")


def web(rig: Rig, value: str) -> Json:
    """Return the work of the scenario: a ConfigMap, a Deployment, and an object that is only read."""

    def named(kind: str, api_version: str = "v1", *, name: str = "web", **body: Any) -> Json:
        meta = {"name": name, "namespace": rig.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}

    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    manifests = [
        named("ConfigMap", data={"value": value}),
        named("Deployment", "apps/v1", spec=deployment),
        named("ConfigMap", name="outside"),
    ]

    def config(group: str, resource: str, name: str, *, path: str, called: str, strategy: str) -> Json:
        where = {"group": group, "resource": resource, "name": name, "namespace": rig.namespace}
        rules = [{"type": "JSONPaths", "jsonPaths": [{"name": called, "path": path}]}]
        return {"resourceIdentifier": where, "feedbackRules": rules, "updateStrategy": {"type": strategy}}

    configs = [
        config("apps", "deployments", "web", path=".status.replicas", called="replicas", strategy="Update"),
        config("", "configmaps", "outside", path=".data.seen", called="seen", strategy="ReadOnly"),
    ]
    return {
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"workload": {"manifests": manifests}, "manifestConfigs": configs},
    }


def plain(rig: Rig, name: str, *, value: str = "1") -> Json:
    """Return a work of one ConfigMap."""
    meta = {"name": name, "namespace": rig.namespace}
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}
    return {"metadata": {"name": name, "labels": {"app": "plain"}}, "spec": {"workload": {"manifests": [manifest]}}}


def feedback(work: Json) -> dict[str, Any]:
    """Return the values that came back with a status."""
    found = {}
    # Clients write what is not there as nothing, as null or as an empty list.
    for manifest in work.get("status", {}).get("resourceStatus", {}).get("manifests") or []:
        for each in manifest.get("statusFeedback", {}).get("values") or []:
            field = each["fieldValue"]
            found[each["name"]] = next(value for key, value in field.items() if key != "type")
    return found


def is_reported(work: Json, *, generation: int, **values: Any) -> bool:
    """Tell whether the work is applied and available at that generation, and these values have come back."""
    conditions = {each["type"]: each for each in work.get("status", {}).get("conditions") or []}
    is_done = all(
        conditions.get(each, {}).get("status") == "True" and conditions[each].get("observedGeneration") == generation
        for each in ("Applied", "Available")
    )
    return is_done and values.items() <= feedback(work).items()


def reported(rig: Rig, **wanted: Any) -> Json:
    def look() -> Json | None:
        work = rig.work("web")
        return work if is_reported(work, **wanted) else None

    return rig.wait(look, f"a status with {wanted}")


def change(rig: Rig, value: str) -> int:
    """Update the work from what is stored now; return its new generation."""
    old = rig.wait(lambda: rig.work("web"), "the work")
    rig.client.patch(rig.consumer, old, web(rig, value))
    # As it is stored, not one more than before: of an earlier try that was cut off only the answer may be lost.
    generation: int = rig.work("web")["metadata"]["generation"]
    return generation


def when_ready(write: Callable[[], Written]) -> Written:
    """Write as users of the Go client do: it sends nothing while it reconnects, also some time after a rotation."""

    def written() -> list[Written] | None:
        try:
            return [write()]
        except Refused as refused:
            if not str(refused).endswith(NOT_READY):
                raise
            return None

    return wait_for(written, what="the client to be ready", seconds=PATIENCE)[0]


def create(rig: Rig) -> None:
    uid = rig.client.create(rig.consumer, web(rig, "1"))["metadata"]["uid"]
    rig.wait(lambda: rig.value("web") == "1", "the ConfigMap")
    stored = rig.work("web")
    assert (stored["metadata"]["uid"], stored["metadata"]["generation"]) == (uid, 1)


def status_with_feedback(rig: Rig) -> None:
    reported(rig, generation=1, replicas=1, seen="first")


def update(rig: Rig) -> None:
    let_it_finish(rig)
    assert change(rig, "2") == 2
    rig.wait(lambda: rig.value("web") == "2", "the changed ConfigMap")
    reported(rig, generation=2)


def stale_version(rig: Rig) -> None:
    stored = rig.work("web")
    old = {**stored, "metadata": {**stored["metadata"], "generation": 1, "resourceVersion": "1"}}
    with pytest.raises(Refused, match="the latest version: 2"):
        rig.client.patch(rig.consumer, old, web(rig, "stale"))
    assert rig.work("web")["metadata"]["generation"] == 2


def watch(rig: Rig) -> None:
    rig.watch = rig.client.watch(rig.consumer)
    wait_watched(rig, lambda told: name_of(told) == "web", "what there is")
    rig.write_outside("watched")
    wait_watched(rig, lambda told: feedback(told["object"]).get("seen") == "watched", "a changed status")


def wait_watched(rig: Rig, wanted: Callable[[Json], bool], what: str) -> None:
    rig.client.wait_watched(rig.watch, wanted, what=f"{what} in the watch", seconds=PATIENCE)


def name_of(told: Json) -> str:
    found: str = told["object"]["metadata"]["name"]
    return found


def list_by_label(rig: Rig) -> None:
    for name in ("other", "third"):
        rig.client.create(rig.consumer, plain(rig, name))
    for selector, names in {
        "app=web": {"web"},
        "app in (web,plain)": {"web", "other", "third"},
        "app!=web": {"other", "third"},
        "app=nobody": set(),
    }.items():
        works, _ = rig.client.list(rig.consumer, selector=selector)
        assert {work["metadata"]["name"] for work in works} == names, selector
    rig.wait(lambda: rig.value("other") == "1", "the second work's ConfigMap")


def agent_away(rig: Rig) -> None:
    rig.stop_agent()
    generation = change(rig, "3")
    rig.client.delete(rig.consumer, "other")
    rig.client.create(rig.consumer, plain(rig, "late"))
    assert rig.work("other")["metadata"]["deletionTimestamp"]
    assert (rig.value("web"), rig.value("other"), rig.value("late")) == ("2", "1", None)
    rig.start_agent()
    rig.wait(lambda: rig.value("web") == "3", "the update made while the agent was away")
    rig.wait(lambda: rig.value("late") == "1", "the work made while the agent was away")
    rig.wait(lambda: rig.value("other") is None, "the deletion asked for while the agent was away")
    rig.wait_until_gone("other")
    reported(rig, generation=generation, seen="watched")


def server_away(rig: Rig) -> None:
    seen = "meanwhile"
    rig.stop_server()
    rig.write_outside(seen)
    rig.start_server()
    generation = rig.wait(lambda: rig.work("web"), "the work")["metadata"]["generation"]
    if (rig.players.server, rig.players.agent, rig.players.broker) == ("go", "go", "mqtt"):
        # What the agent sent to nobody is lost for good: its server asks for lost statuses on the topic of the
        # consumer's ID, and the agent listens on that of its name. Only the next change is reported.
        seen = "afterwards"
        rig.write_outside(seen)
    reported(rig, generation=generation, seen=seen)
    wait_watched(rig, lambda told: feedback(told["object"]).get("seen") == seen, "the status")


def client_certificate(rig: Rig) -> None:
    issue = rig.ground.authority.issue
    rig.client_files.replace_with(issue(cn=rig.source, o=["sources"], expired=True))
    rig.wait(lambda: is_refused(rig), "a client with an expired certificate to be refused")
    rig.client_files.replace_with(issue(cn=rig.source, o=["sources"]))
    generation = rig.wait(lambda: change(rig, "rotated"), "a write with the new certificate")
    rig.wait(lambda: rig.value("web") == "rotated", "the update made with the new certificate")
    wait_watched(
        rig,
        lambda told: name_of(told) == "web" and is_reported(told["object"], generation=generation),
        "its status",
    )


def is_refused(rig: Rig) -> bool:
    old = rig.work("third")
    try:
        rig.client.patch(rig.consumer, old, plain(rig, "third", value=f"{old['metadata']['generation']}"))
    except Refused as refused:
        return refused.reason not in ("NotFound", "Conflict")
    return False


def agent_certificate(rig: Rig) -> None:
    assert rig.agent is not None
    log = rig.agent.log
    issue, name = rig.ground.authority.issue, f"{rig.consumer}-work-agent"
    rig.agent_files.replace_with(issue(cn=name, expired=True))
    rig.cut_off_the_agent()
    said = len(log.read_text())
    rig.wait(lambda: change(rig, "for the renewed agent"), "a write")
    rig.wait(lambda: attempts(log, said) >= 2, "the agent to be refused twice")
    assert rig.value("web") != "for the renewed agent"
    rig.agent_files.replace_with(issue(cn=name))
    rig.wait(lambda: rig.value("web") == "for the renewed agent", "the update made meanwhile")


def attempts(log: Path, since: int) -> int:
    return len(REFUSED.findall(log.read_text()[since:]))


def server_certificate(rig: Rig) -> None:
    fresh = rig.ground.authority.issue(cn="maestro", san=["127.0.0.1", "localhost"])
    rig.server_files.replace_with(fresh)
    rig.wait(lambda: rig.served_certificate().split() == fresh.pem().split(), "the new certificate")
    when_ready(lambda: change(rig, "with the new server certificate"))
    rig.wait(lambda: rig.value("web") == "with the new server certificate", "the update")


def delete(rig: Rig) -> None:
    generation = rig.work("web")["metadata"]["generation"]
    reported(rig, generation=generation)
    let_it_finish(rig)
    when_ready(lambda: rig.client.delete(rig.consumer, "web"))
    rig.wait_until_gone("web")
    assert rig.object("configmaps", "web") is None
    assert rig.object("deployments", "web") is None
    assert rig.object("configmaps", "outside") is not None, "what was only read stays"
    wait_watched(rig, lambda told: told["type"] == "DELETED" and name_of(told) == "web", "the end")


def let_it_finish(rig: Rig) -> None:
    """Let a Go agent say everything before it hears of a deletion or an update: it may lose what crosses its status."""
    if rig.players.agent == "go":
        assert rig.agent is not None
        wait_until_silent(rig.agent.log)


def create_again(rig: Rig) -> None:
    uid = when_ready(lambda: rig.client.create(rig.consumer, web(rig, "again")))["metadata"]["uid"]
    rig.wait(lambda: rig.value("web") == "again", "the ConfigMap")
    stored = reported(rig, generation=1, replicas=1)
    assert stored["metadata"]["uid"] == uid


STEPS: dict[str, Step] = {
    "create": create,
    "status with feedback": status_with_feedback,
    "update": update,
    "stale version refused": stale_version,
    "watch": watch,
    "list by label": list_by_label,
    "agent down and back": agent_away,
    "server down and back": server_away,
    "client certificate rotated": client_certificate,
    "agent certificate rotated": agent_certificate,
    "server certificate replaced": server_certificate,
    "delete to the end": delete,
    "re-create with the same name": create_again,
}
