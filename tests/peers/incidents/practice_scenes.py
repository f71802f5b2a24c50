"""A scene for the practice incidents only: what an operator or the agent decides. Our stack has it, Go's has not."""

import subprocess

from tests.peers.incidents import scenes
from tests.peers.incidents.lab import Lab, Scene
from tests.peers.incidents.truth import STOPPED, Truth
from tests.peers.peer_clients import Json, rest
from tests.peers.peer_servers import PYTHON_CLI

SCENE = Scene(name="guarded")
PAUSED = Truth(work="paused", verdicts=("paused", *STOPPED), codes=("MW-123",))
"""Where the request stops in logs depends on how long one waits; that it is paused does not."""
HELD = Truth(work="adopted", verdicts=("held",), codes=("MW-122", "MD-501"))


def paused(lab: Lab) -> None:
    """Pause the consumer as an operator does, and create a work."""
    lab.create("adopted")
    lab.create("beside")
    lab.applied("adopted", "beside")
    where = f"--rest-url={lab.servers[0].rest_url}"
    command = [*PYTHON_CLI, "consumer", "pause", lab.consumer, "--yes", "--reason=node upgrade", where]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    lab.create("paused")
    lab.collect("paused")
    command = [*PYTHON_CLI, "consumer", "resume", lab.consumer, "--yes", where]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    lab.applied("paused")


def held(lab: Lab) -> None:
    """Start the server on another database, as after a move that went wrong."""
    lab.kill_server()
    lab.database = lab.ground.postgres.create(f"{lab.database.name}_other")
    lab.start_server()
    rest(lab.servers[0], "POST", "/consumers", {"name": lab.consumer})
    lab.logged("server-0", lambda line: "data-safety hold" in line)
    lab.collect("held")


def calm(lab: Lab) -> None:
    """Make what `scenes.grpc4_calm` makes, without what needs admission policies and webhooks."""
    scenes.own_a_field(lab, "contested")
    rest(lab.servers[0], "POST", "/consumers", {"name": lab.named("grpc4-empty")})
    for name in ("ok", "again", "held", "frozen"):
        extra: Json = {"metadata": {"finalizers": ["lab.test/hold"]}} if name == "held" else {}
        extra |= {"immutable": True} if name == "frozen" else {}
        lab.create(name, lab.manifest(name, **extra))
    lab.create("homeless", lab.manifest("homeless", metadata={"namespace": "lab-nowhere"}))
    lab.create("no-crd", lab.manifest("no-crd", kind="Teapot", api="lab.test/v1"))
    lab.create("beside-a")
    lab.create("invalid", scenes.deployment(lab, "invalid"))
    lab.create("forbidden", lab.manifest("forbidden", kind="Secret", stringData={"key": "value"}))
    subject = {"type": "ServiceAccount", "serviceAccount": {"namespace": "default", "name": "nobody"}}
    lab.create("executor", executor={"subject": subject})
    lab.create("contested", manifestConfigs=[scenes.server_side_apply(lab, "contested")])
    lab.create("beside-b")
    lab.create("lonely", consumer=lab.named("grpc4-empty"))
    lab.refused(lambda: lab.create("misdirected", consumer=lab.named("nobody-knows-it")))
    lab.applied("ok", "again", "held", "frozen", "beside-a", "beside-b")
    lab.not_applied("homeless", "no-crd", "invalid", "forbidden", "executor", "contested")
    lab.update("ok", lab.manifest("ok", data={"value": "2"}))
    lab.update("frozen", lab.manifest("frozen", data={"value": "2"}, immutable=True))
    lab.applied("ok", generation=2)
    lab.not_applied("frozen", generation=2)
    for name in ("ok", "again", "held"):
        lab.delete(name)
    lab.gone("ok", "again")
    lab.create("again")
    lab.applied("again")
    lab.collect("calm")


PLAY = (paused, held)
OWN_PLAYS = {"grpc4": (calm, scenes.agent_away, scenes.server_killed)}
"""In place of the plays of a scene, on a ground of our own programs."""
