"""How each of upstream's suites is run on a rig; reports are written as `report*.xml` into the folder of the run."""

import string
import subprocess
import time
from pathlib import Path

from tests.upstream import integration_suite, ocm_suite
from tests.upstream.installation import AGENT, CLIENTS, GRPC, REST, SERVER
from tests.upstream.rig import CLIENT_IMAGE, Rig, rig, say

PAUSE_SECONDS = 70
"""As long as upstream's scripts wait between a new server and the suite: Go clients reconnect up to a minute later, and
do not ask for what they missed meanwhile."""


def e2e(column: str, *, folder: Path, words: list[str]) -> None:
    """Run the end-to-end suite on one kind of server and agent: `python-go-mqtt`."""
    server, agent, broker = column.split("-")
    with rig(broker=broker, folder=folder) as here:
        consumer = here.install(server=server, agent=agent)
        flags = [
            f"-api-server=https://{REST}",
            f"-grpc-server={GRPC}",
            f"-server-kubeconfig={here.cluster.kubeconfig}",
            f"-agent-kubeconfig={here.cluster.kubeconfig}",
            f"-consumer-name={consumer}",
            f"-server-namespace={SERVER}",
            f"-agent-namespace={AGENT}",
        ]
        run(here, "e2e", report="report.xml", words=[*words, *flags])


def upgrade(column: str, *, folder: Path, words: list[str]) -> None:
    """Run the upgrade suite before and after each step of an upgrade to the other kind, and back again."""
    server, agent, broker = column.split("-")
    assert server == agent, f"an upgrade begins with one kind: {column}"
    old, new = server, {"go": "python", "python": "go"}[server]
    with rig(broker=broker, folder=folder, tls=False) as here:
        consumer = here.install(server=old, agent=old)
        work_server = start_work_server(here, consumer)
        flags = [f"-work-server={work_server}", f"-agent-kubeconfig={here.cluster.kubeconfig}"]
        for number, (server, agent) in enumerate(((old, old), (new, old), (new, new), (old, new), (old, old))):
            here.installer.server(tag=server)
            here.installer.agent(tag=agent, consumer=consumer)
            time.sleep(PAUSE_SECONDS if number else 0)
            say(f"step {number + 1} of 5: server {server}, agent {agent}")
            run(here, "upgrade", report=f"report{number}.xml", words=[*words, *flags])


def start_work_server(here: Rig, consumer: str) -> str:
    """Run upstream's client with a REST API, which the upgrade suite talks to, and return its address."""
    manifest = here.upstream.checkout / "test" / "upgrade" / "script" / "resources" / "deployment.yaml"
    values = {"image": f"{CLIENT_IMAGE}:latest", "consumer_name": consumer, "service_account_name": "default"}
    text = string.Template(manifest.read_text()).substitute(values)
    here.installer.kubectl("apply", "-f", "-", given=text, namespace=CLIENTS)
    here.installer.wait_available(CLIENTS, "workserver")
    address = here.installer.kubectl(
        "get", "service", "workserver", "-o", "jsonpath={.spec.clusterIP}", namespace=CLIENTS
    )
    return f"http://{address}:8080"


def run(here: Rig, suite: str, *, report: str, words: list[str]) -> None:
    """Run a test program to its end; what it found is in its report."""
    log = here.folder / "suite.log"
    say(f"the suite {suite} runs (see {log})")
    fixed = ["--ginkgo.v", "--ginkgo.no-color", "--ginkgo.seed=1", f"--ginkgo.junit-report={here.folder / report}"]
    with log.open("ab") as output:
        command = [str(here.upstream.suite(suite)), *fixed, *words]
        subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, cwd=here.folder, check=False)


SUITES = {"e2e": e2e, "upgrade": upgrade, "integration": integration_suite.run, "ocm": ocm_suite.run}
