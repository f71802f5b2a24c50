"""OCM's suite of its work agent, from its Go module: built with OCM's own agent, or with ours started in its place.

The suite is not touched. It runs the agent in its own process; for ours one file of the agent is replaced by
`ocm/agent/spokeagent.go`, which starts a program with that agent's flags.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.peers import go_build, kube_build
from tests.upstream import pod_network
from tests.upstream.rig import made, say

MODULE = Path(__file__).parent / "ocm"
OCM = "open-cluster-management.io/ocm"
VERSION = go_build.pinned_version(MODULE, OCM)
REPLACED = "pkg/work/spoke/spokeagent.go"
RECIPES = {
    kind: go_build.Recipe(
        title=f"OCM's work-agent suite for the {kind} agent",
        duration="several minutes",
        module=MODULE,
        packages=("./test/integration/work",),
        place="ocm",
        label=f"{kind}-",
    )
    for kind in ("go", "python")
}
NOT_FOR = {
    "mqtt": (
        "manifestworkreplicaset_test.go",
        "unmanaged_appliedwork_test.go",
        "manifestworkgarbagecollection_test.go",
    ),
    "grpc": (),
}
"""What OCM's own Makefile leaves out, because these test its hub."""
COMMAND = f"{sys.executable} -m maestropy.cli.main"


def built(kind: str, *, say: go_build.Say) -> Path:
    """Return the folder with the suite's source and its program `work.test`, building it first if it is not there."""
    recipe = RECIPES[kind]
    go = go_build.compiler(recipe)
    folder = recipe.cache / (recipe.label + go_build.key(recipe, go))
    if (folder / "work.test").exists():
        return folder
    with go_build.only_one_builder(recipe):
        if not (folder / "work.test").exists():
            say(f"building {recipe.title} into {folder} (once; {recipe.duration})")
            shutil.rmtree(folder, ignore_errors=True)
            source = told(go, "mod", "download", "-json", OCM, folder=MODULE)["Dir"]
            shutil.copytree(source, folder)
            make_writable(folder)
            if kind == "python":
                shutil.copyfile(MODULE / "agent" / "spokeagent.go", folder / REPLACED)
            words = ["test", "-mod=readonly", "-vet=off", "-p", "1", "-c", "-o", "aside.test", *recipe.packages]
            run_go(go, *words, folder=folder)
            # The suite reads CRDs as from a vendored module; Go would build from it, so it comes after the build.
            vendored = folder / "vendor" / "open-cluster-management.io" / "api"
            found = told(go, "mod", "download", "-json", "open-cluster-management.io/api", folder=folder)["Dir"]
            vendored.parent.mkdir(parents=True)
            vendored.symlink_to(found)
            (folder / "aside.test").rename(folder / "work.test")
    return folder


def told(go: str, *words: str, folder: Path) -> dict[str, str]:
    answer: dict[str, str] = json.loads(run_go(go, *words, folder=folder))
    return answer


def run_go(go: str, *words: str, folder: Path) -> str:
    environment = {**os.environ, "GOFLAGS": "-buildvcs=false"}
    outcome = subprocess.run(
        ["nice", "-n", "10", go, *words], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    if outcome.returncode != 0:
        raise go_build.Unavailable(f"go {words[0]} in {folder}: {outcome.stderr.strip()[-300:]}")
    return outcome.stdout


def make_writable(folder: Path) -> None:
    """Undo what Go does to the files of its module cache."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


def run(column: str, *, folder: Path, words: list[str]) -> None:
    """Run the suite with one kind of agent over one broker: `suite-python-mqtt`."""
    _, kind, broker = column.split("-")
    source = built(kind, say=say)
    control_plane = kube_build.control_plane(say)
    assets = made(folder / "assets")
    for name, program in (
        ("etcd", control_plane.etcd),
        ("kube-apiserver", control_plane.apiserver),
        ("kubectl", control_plane.kubectl),
    ):
        (assets / name).symlink_to(program)
    pod_network.open_bridge()
    environment = {
        **os.environ,
        "KUBEBUILDER_ASSETS": str(assets),
        # The default, 20 s, is too short on a busy machine.
        "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": "180s",
        "AGENT_COMMAND": COMMAND,
        "AGENT_LOGS": str(made(folder / "agents")),
    }
    skipped = [f"--ginkgo.skip-file={name}" for name in NOT_FOR[broker]]
    fixed = ["--ginkgo.v", "--ginkgo.no-color", "--ginkgo.seed=1", f"--ginkgo.junit-report={folder / 'report.xml'}"]
    with (folder / "suite.log").open("ab") as output:
        subprocess.run(
            [str(source / "work.test"), *fixed, *skipped, *words, f"-test.driver={broker}"],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=source,
            env=environment,
            check=False,
        )
