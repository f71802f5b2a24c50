"""The cases of Maestro's `test/integration` that reach a server by REST and gRPC, on a server in a process of its own.

The suite starts Go's server inside its own process. Its program is built here from the checkout, which stays as it is:
Go's `-overlay` replaces the file that starts the server by the same file without these lines, and adds one that reads
the metrics of the other process. Consumers and resources are made as the suite makes them, by Go's code on the shared
database. All other cases call parts of Go's server directly, so there is nothing to run them against.
"""

import hashlib
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.peers import go_build, peer_postgres, peer_servers
from tests.upstream import pod_network, sources
from tests.upstream.rig import made, say

ADDED = Path(__file__).parent / "integration" / "process_metrics.go"
CASES = (
    "TestConsumerGet",
    "TestConsumerPost",
    "TestConsumerPatch",
    "TestConsumerDelete",
    "TestConsumerDeleteForbidden",
    "TestConsumerDeleting",
    "TestConsumerPaging",
    "TestHealthCheckServer",
    "TestResourceBundleGet",
    "TestResourcePaging",
    "TestResourceListSearch",
    "TestResourceFromGRPC",
)
LEFT_OUT = {
    # Would drop and create the database that the server uses.
    "env.Name = envtypes.TestingEnv": "env.Name = envtypes.DevelopmentEnv",
    "\t\thelper.startEventBroadcaster()\n": "",
    "\t\thelper.startAPIServer()\n": "",
    "\t\thelper.startMetricsServer()\n": "",
    "\t\thelper.startHealthCheckServer()\n": "",
    "\t\thelper.startEventServer()\n": "",
    "\t\t\thelper.stopAPIServer,\n": "",
    "\t\t\thelper.stopMetricsServer,\n": "",
    "\tgo helper.ControllerManager.Start(ctx)\n": "",
}
"""Lines of `test/helper.go` → what stands there for us."""
PORTS = (8000, 8090, 8091, 8083, 8080)
"""Those that the suite expects; they are free in the namespace that it runs in."""
OUTCOME = re.compile(r"^--- (?P<outcome>PASS|FAIL|SKIP): (?P<case>\w+)", re.MULTILINE)
CASE = re.compile(r"^func (Test\w+)\(", re.MULTILINE)
BEGIN = "=== RUN   "


def helper_without_server(source: str) -> str:
    """Return the suite's helper without the lines that start the parts of Go's server."""
    for line, instead in LEFT_OUT.items():
        if source.count(line) != 1:
            raise go_build.Unavailable(f"test/helper.go of the checkout does not have once: {line.strip()}")
        source = source.replace(line, instead)
    return source


def built(upstream: sources.Upstream) -> Path:
    """Return the suite's program, building it first if it is not there."""
    helper = upstream.checkout / "test" / "helper.go"
    text = helper_without_server(helper.read_text())
    key = hashlib.sha256(f"{upstream.commit}{text}{ADDED.read_text()}".encode()).hexdigest()[:16]
    folder = made(upstream.suites / f"integration-{key}")
    program = folder / "integration.test"
    if not program.exists():
        say(f"building Maestro's integration suite into {folder} (once; several minutes)")
        (folder / "helper.go").write_text(text)
        replaced = {str(helper): str(folder / "helper.go"), str(helper.parent / ADDED.name): str(ADDED)}
        (folder / "overlay.json").write_text(json.dumps({"Replace": replaced}))
        go = go_build.compiler(sources.HELM)
        how = ["-overlay", str(folder / "overlay.json"), "-mod=readonly", "-buildvcs=false", "-vet=off"]
        command = ["nice", "-n", "10", go, "test", *how, "-c", "-o", str(folder / "aside.test"), "./test/integration"]
        outcome = subprocess.run(command, cwd=upstream.checkout, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise go_build.Unavailable(f"the integration suite could not be built: {outcome.stderr.strip()[-300:]}")
        (folder / "aside.test").rename(program)
    return program


def run(column: str, *, folder: Path, words: list[str]) -> None:
    """Run the cases on one kind of server: `python-suite-grpc`; the suite plays the source and the agent."""
    kind, _, broker = column.split("-")
    upstream = sources.upstream()
    program = built(upstream)
    pod_network.open_bridge()
    with peer_postgres.cluster(made(folder / "postgres")) as postgres:
        database = postgres.create("maestro")
        # The suite migrates too, and needs Go's migrations to be there first.
        secrets = peer_servers.database_files(database, folder)
        peer_servers.migrate([str(upstream.maestro), "migration", *secrets])
        flags = ["--heartbeat-interval=1"]
        if kind == "go":
            command = [str(upstream.maestro), "server", "--v=4", *secrets]
        else:
            peer_servers.migrate([*peer_servers.PYTHON_CLI, "migration", "--db-dsn", database.dsn])
            command = [*peer_servers.PYTHON_CLI, "server", "--v=4", "--db-dsn", database.dsn]
        with peer_servers.serving(
            kind, command, broker=broker, database=database, folder=folder, flags=flags, ports=PORTS
        ) as server:
            chosen = next((word.partition("=")[2] for word in words if word.startswith("--ginkgo.focus=")), "")
            pattern = chosen or f"^({'|'.join(CASES)})$"
            environment = {**os.environ, "METRICS_URL": server.metrics_url, "MESSAGE_DRIVER_TYPE": broker}
            log = folder / "suite.log"
            with log.open("wb") as output:
                # Go's flags end at the first word that is none; the suite's own flags go on behind it.
                subprocess.run(
                    [str(program), "-test.v", f"-test.run={pattern}", "-test.timeout=20m", "flags", *secrets],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=folder,
                    env=environment,
                    check=False,
                )
    others = [name for name in all_cases(upstream.checkout) if name not in CASES]
    write_report(log.read_text(errors="replace"), skipped=others, report=folder / "report.xml")


def all_cases(checkout: Path) -> list[str]:
    """Return the names of all cases; the program itself cannot tell them without a server."""
    files = sorted((checkout / "test" / "integration").glob("*_test.go"))
    return [name for path in files for name in CASE.findall(path.read_text()) if name != "TestMain"]


def write_report(output: str, *, skipped: list[str], report: Path) -> None:
    """Write the report that the other suites write themselves."""
    cases = ET.Element("testsuite")
    found = {match["case"]: match for match in OUTCOME.finditer(output)}
    for name, match in found.items():
        case = ET.SubElement(cases, "testcase", name=f"[It] {name}")
        if match["outcome"] == "FAIL":
            text = output[: match.start()].rpartition(f"{BEGIN}{name}\n")[2]
            ET.SubElement(case, "failure", message=text.strip()[-2000:])
        elif match["outcome"] == "SKIP":
            ET.SubElement(case, "skipped")
    for name in (name for name in CASES if name not in found):
        # A case that ends the process leaves no line.
        case = ET.SubElement(cases, "testcase", name=f"[It] {name}")
        ET.SubElement(case, "failure", message=f"did not end: {output.strip()[-300:]}")
    for name in skipped:
        ET.SubElement(ET.SubElement(cases, "testcase", name=f"[It] {name}"), "skipped")
    ET.ElementTree(cases).write(report)
