"""What every combination has to do, step by step; each step builds on those before it and says nothing of who plays."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kube_agents import wait_until_silent
from peer_clients import Json, Refused
from stage import PATIENCE, Stage

Step = Callable[[Stage], None]
REFUSED = re.compile(r"client is disconnected|failed to subscribe|reconnect failed|failed to connect")


def web(stage: Stage, value: str) -> Json:
    """Return the work of the scenario: a ConfigMap, a Deployment, and an object that is only read."""

    def named(kind: str, api_version: str = "v1", *, name: str = "web", **body: Any) -> Json:
        meta = {"name": name, "namespace": stage.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": meta, **body}

    pod = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web.test/web"}]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": pod}
    manifests = [
        named("ConfigMap", data={"value": value}),
        named("Deployment", "apps/v1", spec=deployment),
        named("ConfigMap", name="outside"),
    ]

    def config(group: str, resource: str, name: str, *, path: str, called: str, strategy: str) -> Json:
        where = {"group": group, "resource": resource, "name": name, "namespace": stage.namespace}
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


def plain(stage: Stage, name: str, *, value: str = "1") -> Json:
    """Return a work of one ConfigMap."""
    meta = {"name": name, "namespace": stage.namespace}
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


def reported(stage: Stage, **wanted: Any) -> Json:
    def look() -> Json | None:
        work = stage.work("web")
        return work if is_reported(work, **wanted) else None

    return stage.wait(look, f"a status with {wanted}")


def change(stage: Stage, value: str) -> int:
    """Update the work from what is stored now; return its new generation."""
    old = stage.wait(lambda: stage.work("web"), "the work")
    stage.client.patch(stage.consumer, old, web(stage, value))
    # As it is stored, not one more than before: of an earlier try that was cut off only the answer may be lost.
    generation: int = stage.work("web")["metadata"]["generation"]
    return generation


def create(stage: Stage) -> None:
    uid = stage.client.create(stage.consumer, web(stage, "1"))["metadata"]["uid"]
    stage.wait(lambda: stage.value("web") == "1", "the ConfigMap")
    stored = stage.work("web")
    assert (stored["metadata"]["uid"], stored["metadata"]["generation"]) == (uid, 1)


def status_with_feedback(stage: Stage) -> None:
    reported(stage, generation=1, replicas=1, seen="first")


def update(stage: Stage) -> None:
    assert change(stage, "2") == 2
    stage.wait(lambda: stage.value("web") == "2", "the changed ConfigMap")
    reported(stage, generation=2)


def stale_version(stage: Stage) -> None:
    stored = stage.work("web")
    old = {**stored, "metadata": {**stored["metadata"], "generation": 1, "resourceVersion": "1"}}
    with pytest.raises(Refused, match="the latest version: 2"):
        stage.client.patch(stage.consumer, old, web(stage, "stale"))
    assert stage.work("web")["metadata"]["generation"] == 2


def watch(stage: Stage) -> None:
    stage.watch = stage.client.watch(stage.consumer)
    wait_watched(stage, lambda told: name_of(told) == "web", "what there is")
    stage.write_outside("watched")
    wait_watched(stage, lambda told: feedback(told["object"]).get("seen") == "watched", "a changed status")


def wait_watched(stage: Stage, wanted: Callable[[Json], bool], what: str) -> None:
    stage.client.wait_watched(stage.watch, wanted, what=f"{what} in the watch", seconds=PATIENCE)


def name_of(told: Json) -> str:
    found: str = told["object"]["metadata"]["name"]
    return found


def list_by_label(stage: Stage) -> None:
    for name in ("other", "third"):
        stage.client.create(stage.consumer, plain(stage, name))
    for selector, names in {
        "app=web": {"web"},
        "app in (web,plain)": {"web", "other", "third"},
        "app!=web": {"other", "third"},
        "app=nobody": set(),
    }.items():
        works, _ = stage.client.list(stage.consumer, selector=selector)
        assert {each["metadata"]["name"] for each in works} == names, selector
    stage.wait(lambda: stage.value("other") == "1", "the second work's ConfigMap")


def agent_away(stage: Stage) -> None:
    stage.stop_agent()
    generation = change(stage, "3")
    stage.client.delete(stage.consumer, "other")
    stage.client.create(stage.consumer, plain(stage, "late"))
    assert stage.work("other")["metadata"]["deletionTimestamp"]
    assert (stage.value("web"), stage.value("other"), stage.value("late")) == ("2", "1", None)
    stage.start_agent()
    stage.wait(lambda: stage.value("web") == "3", "the update made while the agent was away")
    stage.wait(lambda: stage.value("late") == "1", "the work made while the agent was away")
    stage.wait(lambda: stage.value("other") is None, "the deletion asked for while the agent was away")
    stage.wait(lambda: stage.is_gone("other"), "the deleted work to go")
    reported(stage, generation=generation, seen="watched")


def server_away(stage: Stage) -> None:
    stage.stop_server()
    stage.write_outside("meanwhile")
    stage.start_server()
    generation = stage.wait(lambda: stage.work("web"), "the work")["metadata"]["generation"]
    reported(stage, generation=generation, seen="meanwhile")
    wait_watched(stage, lambda told: feedback(told["object"]).get("seen") == "meanwhile", "the status")


def client_certificate(stage: Stage) -> None:
    issue = stage.ground.authority.issue
    stage.client_files.replace_with(issue(cn=stage.source, o=["sources"], expired=True))
    stage.wait(lambda: is_refused(stage), "a client with an expired certificate to be refused")
    stage.client_files.replace_with(issue(cn=stage.source, o=["sources"]))
    generation = stage.wait(lambda: change(stage, "rotated"), "a write with the new certificate")
    stage.wait(lambda: stage.value("web") == "rotated", "the update made with the new certificate")
    wait_watched(
        stage,
        lambda told: name_of(told) == "web" and is_reported(told["object"], generation=generation),
        "its status",
    )


def is_refused(stage: Stage) -> bool:
    old = stage.work("third")
    try:
        stage.client.patch(stage.consumer, old, plain(stage, "third", value=f"{old['metadata']['generation']}"))
    except Refused as refused:
        return refused.reason not in ("NotFound", "Conflict")
    return False


def agent_certificate(stage: Stage) -> None:
    assert stage.agent is not None
    log = stage.agent.log
    issue, name = stage.ground.authority.issue, f"{stage.consumer}-work-agent"
    stage.agent_files.replace_with(issue(cn=name, expired=True))
    stage.cut_off_the_agent()
    said = len(log.read_text())
    stage.wait(lambda: change(stage, "for the renewed agent"), "a write")
    stage.wait(lambda: attempts(log, said) >= 2, "the agent to be refused twice")
    assert stage.value("web") != "for the renewed agent"
    stage.agent_files.replace_with(issue(cn=name))
    stage.wait(lambda: stage.value("web") == "for the renewed agent", "the update made meanwhile")


def attempts(log: Path, since: int) -> int:
    return len(REFUSED.findall(log.read_text()[since:]))


def server_certificate(stage: Stage) -> None:
    fresh = stage.ground.authority.issue(cn="maestro", san=["127.0.0.1", "localhost"])
    stage.server_files.replace_with(fresh)
    stage.wait(lambda: stage.served_certificate().split() == fresh.pem().split(), "the new certificate")
    change(stage, "with the new server certificate")
    stage.wait(lambda: stage.value("web") == "with the new server certificate", "the update")


def delete(stage: Stage) -> None:
    generation = stage.work("web")["metadata"]["generation"]
    reported(stage, generation=generation)
    let_it_finish(stage)
    stage.client.delete(stage.consumer, "web")
    stage.wait(lambda: stage.is_gone("web"), "the work to go")
    assert stage.object("configmaps", "web") is None
    assert stage.object("deployments", "web") is None
    assert stage.object("configmaps", "outside") is not None, "what was only read stays"
    wait_watched(stage, lambda told: told["type"] == "DELETED" and name_of(told) == "web", "the end")


def let_it_finish(stage: Stage) -> None:
    """Let a Go agent say everything before it hears of a deletion."""
    if stage.players.agent == "go":
        assert stage.agent is not None
        wait_until_silent(stage.agent.log)


def create_again(stage: Stage) -> None:
    uid = stage.client.create(stage.consumer, web(stage, "again"))["metadata"]["uid"]
    stage.wait(lambda: stage.value("web") == "again", "the ConfigMap")
    stored = reported(stage, generation=1, replicas=1)
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
