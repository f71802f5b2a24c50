"""How the situations of each scene are made: what is asked of the running stack, and what is broken when."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator

from tests.peers.incidents import collecting
from tests.peers.incidents.lab import Lab
from tests.peers.kube_agents import wait_until_silent
from tests.peers.kube_cluster import answer
from tests.peers.peer_clients import Json, rest

ADMISSION = "/apis/admissionregistration.k8s.io/v1"


def quiet(lab: Lab) -> None:
    """Wait until the agent says nothing more; the Go agent loses a deletion that meets a status on its way."""
    if lab.ground.kind == "go":
        assert lab.agent is not None
        wait_until_silent(lab.agent.log)


def deployment(lab: Lab, name: str) -> Json:
    """Return a Deployment that the API server refuses."""
    return lab.manifest(name, kind="Deployment", api="apps/v1", spec={"replicas": 1})


def deny_by_policy(lab: Lab) -> None:
    """Deny ConfigMaps that carry a label, by a policy of the cluster."""
    name = f"lab-deny-{lab.namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    ours = {"matchLabels": {"kubernetes.io/metadata.name": lab.namespace}}
    policy = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule], "namespaceSelector": ours},
            "validations": [
                {"expression": "!has(object.metadata.labels) || !('evil' in object.metadata.labels)", "message": "evil"}
            ],
        },
    }
    answer(lab.api.post(f"{ADMISSION}/validatingadmissionpolicies", json=policy))
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}
    answer(lab.api.post(f"{ADMISSION}/validatingadmissionpolicybindings", json=binding))
    hook = {
        "metadata": {"name": f"lab-hook-{lab.namespace}"},
        "webhooks": [
            {
                "name": "hook.lab.test",
                # Nobody listens there.
                "clientConfig": {"url": "https://127.0.0.1:9/"},
                "rules": [rule | {"resources": ["services"]}],
                "namespaceSelector": ours,
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail",
                "timeoutSeconds": 2,
            }
        ],
    }
    answer(lab.api.post(f"{ADMISSION}/validatingwebhookconfigurations", json=hook))
    for kind, body in (
        ("configmaps", {"metadata": {"name": "probe", "labels": {"evil": "yes"}}}),
        ("services", {"metadata": {"name": "probe"}, "spec": {"ports": [{"port": 1}]}}),
    ):
        path = f"/api/v1/namespaces/{lab.namespace}/{kind}?dryRun=All"
        lab.wait(lambda: not lab.api.post(path, json=body).is_success, f"{kind} to be denied")


def own_a_field(lab: Lab, name: str) -> None:
    """Let another manager own the field that the work will want."""
    path = f"/api/v1/namespaces/{lab.namespace}/configmaps/{lab.named(name)}?fieldManager=other"
    body = lab.manifest(name, data={"value": "theirs"})
    headers = {"Content-Type": "application/apply-patch+yaml"}
    answer(lab.api.patch(path, json=body, headers=headers))


def server_side_apply(lab: Lab, name: str) -> Json:
    """Return the configuration of a manifest that is applied without force."""
    where = {"group": "", "resource": "configmaps", "name": lab.named(name), "namespace": lab.namespace}
    return {
        "resourceIdentifier": where,
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": False}},
    }


def grpc4_calm(lab: Lab) -> None:
    """Make all situations that need nothing stopped, side by side."""
    deny_by_policy(lab)
    own_a_field(lab, "contested")
    rest(lab.servers[0], "POST", "/consumers", {"name": lab.named("grpc4-empty")})
    for name in ("ok", "again", "held", "frozen", "raced", "same"):
        extra: Json = {"metadata": {"finalizers": ["lab.test/hold"]}} if name == "held" else {}
        extra |= {"immutable": True} if name == "frozen" else {}
        lab.create(name, lab.manifest(name, **extra))
    lab.create("homeless", lab.manifest("homeless", metadata={"namespace": "lab-nowhere"}))
    lab.create("no-crd", lab.manifest("no-crd", kind="Teapot", api="lab.test/v1"))
    lab.create("beside-a")
    lab.create("invalid", deployment(lab, "invalid"))
    lab.create("partly", lab.manifest("partly"), deployment(lab, "partly"))
    lab.create("denied", lab.manifest("denied", metadata={"labels": {"evil": "yes"}}))
    lab.create("hooked", lab.manifest("hooked", kind="Service", spec={"ports": [{"port": 80}]}))
    lab.create("forbidden", lab.manifest("forbidden", kind="Secret", stringData={"key": "value"}))
    subject = {"type": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": "nobody"}}
    lab.create("executor", executor={"subject": subject})
    lab.create("contested", manifestConfigs=[server_side_apply(lab, "contested")])
    lab.create("beside-b")
    lab.create("lonely", consumer=lab.named("grpc4-empty"))
    lab.refused(lambda: lab.create("misdirected", consumer=lab.named("nobody-knows-it")))
    lab.applied("ok", "again", "held", "frozen", "raced", "same", "beside-a", "beside-b")
    lab.not_applied("homeless", "no-crd", "invalid", "partly", "denied", "hooked", "forbidden", "executor", "contested")
    old = lab.stored("raced")
    lab.update("ok", lab.manifest("ok", data={"value": "2"}))
    lab.update("raced", lab.manifest("raced", data={"value": "2"}))
    lab.update("frozen", lab.manifest("frozen", data={"value": "2"}, immutable=True))
    lab.update("same")
    lab.applied("ok", "raced", generation=2)
    stale = lab.work("raced", lab.manifest("raced", data={"value": "stale"}))
    lab.refused(lambda: lab.client.patch(lab.consumer, old, stale))
    lab.not_applied("frozen", generation=2)
    quiet(lab)
    for name in ("ok", "again", "held"):
        lab.delete(name)
    lab.gone("ok", "again")
    lab.create("again")
    lab.applied("again")
    lab.collect("calm")


def grpc4_broken(lab: Lab) -> None:
    """Stop one part after another, and let each come back."""
    api_hangs(lab)
    agent_killed(lab)
    agent_away(lab)
    server_killed(lab)


def api_hangs(lab: Lab) -> None:
    leaver = lab.new_client(f"{lab.scene.name}-leaver")
    leaver.watch("")
    lab.gate.close()
    lab.create("hang")
    lab.note("left", lab.consumer, leaver.source)
    leaver.create(lab.consumer, lab.work("left"))
    lab.agent_received("hang")
    lab.logged("agent", lambda line: '"Received event"' in line and lab.asked["left"] in line)
    leaver.close()
    lab.collect("api-hangs")
    answer(lab.api.post("/api/v1/namespaces", json={"metadata": {"name": "lab-nowhere"}}))
    lab.gate.open()
    release(lab, "held")
    lab.applied("hang", "homeless")
    lab.gone("held")
    lab.wait(lambda: lab.api.get(config_map(lab, "left")).is_success, "the object of the client that left")
    lab.collect("api-back")


def release(lab: Lab, name: str) -> None:
    """Remove the finalizers of an object, as an operator does."""
    headers = {"Content-Type": "application/merge-patch+json"}
    answer(lab.api.patch(config_map(lab, name), json={"metadata": {"finalizers": None}}, headers=headers))


def config_map(lab: Lab, name: str) -> str:
    return f"/api/v1/namespaces/{lab.namespace}/configmaps/{lab.named(name)}"


def agent_killed(lab: Lab, *, restart: bool = True) -> None:
    quiet(lab)
    lab.gate.close()
    lab.create("killed")
    lab.agent_received("killed")
    lab.kill_agent()
    lab.collect("agent-killed")
    lab.gate.open()
    lab.gate.cut()
    if restart:
        lab.start_agent()
        lab.applied("killed")
        lab.collect("agent-restarted")


def agent_away(lab: Lab) -> None:
    lab.stop_agent()
    lab.create("while-away")
    for value in ("2", "3"):
        lab.update("beside-a", lab.manifest("beside-a", data={"value": value}))
    lab.delete("beside-b")
    lab.collect("agent-away")
    lab.start_agent()
    lab.gone("beside-b")
    lab.applied("while-away")
    lab.applied("beside-a", generation=3)
    lab.collect("agent-back")


def server_killed(lab: Lab) -> None:
    lab.mute("events")
    lab.create("unpublished")
    lab.kill_server()
    lab.collect("server-killed")
    lab.unmute("events")
    lab.start_server()
    lab.applied("unpublished")
    lab.told("unpublished")
    lab.collect("server-back")


def life(lab: Lab) -> None:
    """Create, update and delete a work, beside one that cannot be applied."""
    lab.create("invalid", deployment(lab, "invalid"))
    lab.create("ok")
    lab.create("beside")
    lab.applied("ok", "beside")
    lab.update("ok", lab.manifest("ok", data={"value": "2"}))
    lab.applied("ok", generation=2)
    lab.not_applied("invalid")
    quiet(lab)
    lab.delete("ok")
    lab.gone("ok")


def mqtt2_calm(lab: Lab) -> None:
    rest(lab.servers[0], "POST", "/consumers", {"name": lab.named("mqtt2-empty")})
    lab.create("lonely", consumer=lab.named("mqtt2-empty"))
    lab.refused(lambda: lab.create("misdirected", consumer=lab.named("nobody-knows-it")))
    life(lab)
    lab.collect("calm")


def mqtt2_database(lab: Lab) -> None:
    """Lose notifications, and let the database refuse a status."""
    lab.mute("events")
    lab.create("unnotified")
    if lab.ground.kind == "python":
        lab.applied("unnotified")
    lab.collect("spec-unnotified")
    lab.unmute("events")
    lab.mute("status_events")
    lab.create("unheard")
    lab.applied("unheard")
    lab.collect("status-unnotified")
    lab.unmute("status_events")
    lab.sql(REFUSE_STATUSES)
    lab.create("unhandled")
    lab.wait(lambda: lab.api.get(config_map(lab, "unhandled")).is_success, "the object")
    lab.collect("status-refused")
    lab.sql("DROP TRIGGER lab_full ON status_events")


REFUSE_STATUSES = """
CREATE OR REPLACE FUNCTION lab_full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER lab_full BEFORE INSERT ON status_events FOR EACH STATEMENT EXECUTE FUNCTION lab_full();
"""


def mqtt2_client(lab: Lab) -> None:
    leaver = lab.new_client(f"{lab.scene.name}-leaver")
    leaver.watch("")
    lab.gate.close()
    lab.note("left", lab.consumer, leaver.source)
    leaver.create(lab.consumer, lab.work("left"))
    lab.logged("agent", lambda line: '"Received event"' in line and lab.asked["left"] in line)
    leaver.close()
    lab.gate.open()
    lab.wait(lambda: lab.api.get(config_map(lab, "left")).is_success, "the object of the client that left")
    lab.collect("client-left")


def mqtt2_broker(lab: Lab) -> None:
    """Stop the broker before the server publishes, and while the agent applies."""
    assert lab.broker is not None
    lab.broker.stop()
    lab.create("no-broker")
    lab.collect("broker-down")
    lab.broker.start()
    lab.applied("no-broker")
    lab.collect("broker-back")
    lab.gate.close()
    lab.create("muffled")
    lab.agent_received("muffled")
    lab.broker.stop()
    lab.gate.open()
    lab.wait(lambda: lab.api.get(config_map(lab, "muffled")).is_success, "the object")
    lab.collect("agent-unheard")
    lab.broker.start()
    lab.applied("muffled")
    lab.collect("agent-heard")


def mqtt2_server(lab: Lab) -> None:
    """Kill the server while the agent applies."""
    lab.gate.close()
    lab.create("unreceived")
    lab.agent_received("unreceived")
    lab.kill_server()
    lab.gate.open()
    lab.logged("agent", lambda line: '"Sending event"' in line and lab.asked["unreceived"] in line)
    lab.collect("server-gone")
    lab.start_server()
    lab.applied("unreceived")
    lab.collect("server-again")


def mqtt4x2(lab: Lab) -> None:
    """Play once, and collect the logs in many ways."""
    life(lab)
    whole = lab.collect("calm")
    variants = {
        "without-server-1": collecting.without("maestro-1.log"),
        "without-server-0": collecting.without("maestro-0.log"),
        "servers-only": collecting.without("maestro-agent-0.log"),
        "kusto": collecting.kusto,
        "prefixed": collecting.prefixed,
        "docker": collecting.docker,
        "utf16": collecting.utf16,
    }
    for moment, collect in variants.items():
        lab.moments[moment] = collecting.variant(whole, moment, collect)
    lab.create("first")
    lab.applied("first")
    lab.gate.close()
    lab.create("last")
    lab.agent_received("last")
    cut = lab.collect("truncated", quiet=False)
    collecting.cut_off(cut)
    lab.gate.open()
    lab.applied("last")


def grpc10x2(lab: Lab) -> None:
    life(lab)
    whole = lab.collect("calm")
    for moment, name in (("without-server-1", "maestro-1.log"), ("servers-only", "maestro-agent-0.log")):
        lab.moments[moment] = collecting.variant(whole, moment, collecting.without(name))
    lab.kill_server(1)
    lab.start_server(1)
    lab.create("after")
    lab.applied("after")
    lab.collect("reconnected")


def mqtt10(lab: Lab) -> None:
    """A healthy life at the highest verbosity, and an object that somebody else writes all the time."""
    life(lab)
    lab.create("no-crd", lab.manifest("no-crd", kind="Teapot", api="lab.test/v1"))
    lab.create("hammered")
    lab.create("untouched")
    lab.applied("hammered", "untouched")
    lab.not_applied("no-crd")
    lab.collect("calm")
    with hammering(lab, "hammered"):
        lab.update("hammered", lab.manifest("hammered", data={"value": "2"}))
        lab.not_applied("hammered", generation=2)
        lab.collect("hammered", quiet=False)
        assert lab.condition("hammered", "Applied", generation=2) == "False", "an update came through"
    lab.applied("hammered", generation=2)
    lab.collect("unhammered")


@contextlib.contextmanager
def hammering(lab: Lab, name: str) -> Iterator[None]:
    """Change an annotation of an object without a pause."""
    over = threading.Event()
    headers = {"Content-Type": "application/merge-patch+json"}

    def write(writer: int) -> None:
        with lab.ground.cluster.client() as api:
            for number in itertools.count():
                if over.is_set():
                    return
                body = {"metadata": {"annotations": {f"writer-{writer}": str(number)}}}
                api.patch(config_map(lab, name), json=body, headers=headers)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(8)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(30)


def grpc2(lab: Lab) -> None:
    rest(lab.servers[0], "POST", "/consumers", {"name": lab.named("grpc2-empty")})
    lab.create("lonely", consumer=lab.named("grpc2-empty"))
    life(lab)
    lab.collect("calm")
    agent_killed(lab, restart=False)


PLAYS: dict[str, tuple[Callable[[Lab], None], ...]] = {
    "grpc4": (grpc4_calm, grpc4_broken),
    "mqtt2": (mqtt2_calm, mqtt2_database, mqtt2_client, mqtt2_broker, mqtt2_server),
    "mqtt4x2": (mqtt4x2,),
    "grpc10x2": (grpc10x2,),
    "mqtt10": (mqtt10,),
    "grpc2": (grpc2,),
}
