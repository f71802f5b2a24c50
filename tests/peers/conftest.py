"""Fixtures of the peers' tests: the Go Maestro and our server, side by side, each on a PostgreSQL of the test's own,
and a real Kubernetes control plane.

The Go programs that the chosen tests need are built before the first test, outside any test's timeout; where that
cannot be, these tests are skipped with the reason. The logs of all processes are shown with a failed test.
"""

import itertools
import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest

from tests.peers import go_build, kube_build, peer_build, peer_postgres, pubsub_emulator
from tests.peers.charts.rendering import Helm
from tests.peers.go_build import Say, Unavailable
from tests.peers.kube_cluster import KubeCluster, answer, kube_cluster
from tests.peers.peer_clients import Agent, WorkClient, rest
from tests.peers.peer_processes import tail
from tests.peers.peer_servers import RunningServer, go_server, python_server, python_server_exists
from tests.upstream import sources
from tests.waiting import wait_for

BUILT = pytest.StashKey[peer_build.Programs | str]()
CONTROL_PLANE = pytest.StashKey[kube_build.ControlPlane | str]()
HELM = pytest.StashKey[Path | str]()
LOGS = pytest.StashKey[list[Path]]()
CLUSTER_LOGS = pytest.StashKey[list[Path]]()
HERE = Path(__file__).parent
NUMBERS = itertools.count(1)
Programs = TypeVar("Programs")


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.getoption("collectonly"):
        return
    needed = {name for item in session.items if HERE in item.path.parents for name in fixtures_of(item)}
    stash = session.config.stash
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    say = reporter.write_line if reporter else print
    if "programs" in needed:
        stash[BUILT] = built_or_reason(peer_build.programs, say)
    if "pubsub" in needed:
        built_or_reason(lambda say: go_build.built(pubsub_emulator.RECIPE, say), say)  # who needs it gives the reason
    if "helm" in needed:
        stash[HELM] = built_or_reason(lambda say: go_build.built(sources.HELM, say), say)
    if "control_plane" in needed:
        stash[CONTROL_PLANE] = built_or_reason(kube_build.control_plane, say)


def fixtures_of(item: pytest.Item) -> list[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else []


def built_or_reason(build: Callable[[Say], Programs], say: Say) -> Programs | str:
    try:
        return build(say)
    except Unavailable as reason:
        return str(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        logs = item.config.stash.get(LOGS, [])
        if "real_cluster" in fixtures_of(item):
            logs = [*logs, *item.config.stash.get(CLUSTER_LOGS, [])]
        for log in logs:
            report.sections.append((f"end of {log}", tail(log)))
    return report


@pytest.fixture(scope="session")
def shown_logs(pytestconfig: pytest.Config) -> list[Path]:
    """The logs whose ends are shown with a failed test; who starts a process adds its log and takes it back."""
    return pytestconfig.stash.setdefault(LOGS, [])


@pytest.fixture(scope="session")
def programs(pytestconfig: pytest.Config) -> peer_build.Programs:
    built = pytestconfig.stash[BUILT]
    if isinstance(built, str):
        pytest.skip(built)
    return built


@pytest.fixture(scope="session")
def newest_maestro(programs: peer_build.Programs) -> Path:
    """The newest `maestro` of Go that this machine has: MAESTROPY_GO_MAESTRO, or that of go.mod; a test says which."""
    named = os.environ.get("MAESTROPY_GO_MAESTRO", "")
    print(f"the Go Maestro is {named or f'that of go.mod, {peer_build.maestro_version()}'}")
    return Path(named) if named else programs.maestro


@pytest.fixture(scope="session")
def control_plane(pytestconfig: pytest.Config) -> kube_build.ControlPlane:
    built = pytestconfig.stash[CONTROL_PLANE]
    if isinstance(built, str):
        pytest.skip(built)
    return built


@pytest.fixture(scope="session")
def helm(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    built = pytestconfig.stash[HELM]
    if isinstance(built, str):
        pytest.skip(built)
    return Helm(program=built / "helm", folder=tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def real_cluster(
    control_plane: kube_build.ControlPlane, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[KubeCluster]:
    """One Kubernetes for all tests; a test keeps to a namespace and names of its own."""
    logs = pytestconfig.stash.setdefault(CLUSTER_LOGS, [])
    with kube_cluster(control_plane, folder=tmp_path_factory.mktemp("kube"), on_log=logs.append) as running:
        yield running


@pytest.fixture
def namespace(real_cluster: KubeCluster) -> Iterator[str]:
    """A new namespace, ready for Pods."""
    name = f"test{next(NUMBERS)}"
    with real_cluster.client() as api:
        answer(api.post("/api/v1/namespaces", json={"metadata": {"name": name}}))
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for(lambda: api.get(account).is_success, what=f"the account of namespace {name}")
        yield name
        api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def postgres() -> Iterator[peer_postgres.Cluster]:
    # Not below pytest's own folder: every other run that starts as root closes that to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="peer-postgres-", ignore_cleanup_errors=True) as folder:
        with peer_postgres.cluster(Path(folder)) as running:
            yield running


@pytest.fixture(scope="module", params=["go", "python"])
def server(
    request: pytest.FixtureRequest,
    programs: peer_build.Programs,
    postgres: peer_postgres.Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningServer]:
    """One server for all tests of a module, on its own database: first the Go one, then ours."""
    folder = tmp_path_factory.mktemp(f"{request.param}-server")
    if request.param == "python" and not python_server_exists():
        pytest.skip("`python -m maestropy.cli.main server` does not exist yet")
    database = postgres.create(f"maestro{next(NUMBERS)}")
    logs = request.config.stash.setdefault(LOGS, [])
    with ExitStack() as stack:
        if request.param == "go":
            running = stack.enter_context(go_server(programs, database=database, folder=folder))
        else:
            running = stack.enter_context(python_server(database=database, folder=folder))
        logs.append(running.log)
        yield running
        logs.remove(running.log)


@pytest.fixture
def consumer(server: RunningServer) -> str:
    """The name of a new consumer, so that tests on one server do not meet."""
    name = f"cluster{next(NUMBERS)}"
    rest(server, "POST", "/consumers", {"name": name})
    return name


@pytest.fixture
def start_agent(
    programs: peer_build.Programs, server: RunningServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Agent]]:
    """Start Go agents; those still running end with the test."""
    logs = request.config.stash.setdefault(LOGS, [])
    with ExitStack() as stack:

        def start(cluster: str) -> Agent:
            log = tmp_path / f"agent{next(NUMBERS)}.log"
            logs.append(log)
            stack.callback(logs.remove, log)
            return stack.enter_context(Agent(programs, server, cluster=cluster, log=log))

        yield start


@pytest.fixture
def client(
    programs: peer_build.Programs, server: RunningServer, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[WorkClient]:
    """A Go work client with a source id of its own."""
    log = tmp_path / "workclient.log"
    logs = request.config.stash.setdefault(LOGS, [])
    with WorkClient(programs, server, source=f"source{next(NUMBERS)}", log=log) as running:
        logs.append(log)
        yield running
        logs.remove(log)
