"""A real Kubernetes control plane on loopback: etcd, kube-apiserver with RBAC, kube-controller-manager.

    with kube_cluster(programs, folder=tmp_path) as cluster, cluster.client() as api:
        api.get("/api/v1/namespaces")

There is no scheduler and no node: Deployments get ReplicaSets and Pods, but no Pod ever runs. The CRDs of an agent are
installed. Whoever presents the administrator's certificate may do everything, whoever presents none nothing.
"""

import contextlib
import dataclasses
import functools
import itertools
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

import maestropy
from tests import certificates
from tests.peers import kube_commands
from tests.peers.kube_build import ControlPlane
from tests.peers.peer_processes import free_ports, running, tail
from tests.waiting import wait_for

AGENT_CRDS = Path(maestropy.__file__).parent / "agent" / "crds"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
START_SECONDS = 60
"""For one program; far more than an idle machine needs, because machines that test are not idle."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeCluster:
    """A running cluster, as its administrator sees it."""

    url: str
    folder: Path
    authority: certificates.Authority
    admin: certificates.CertFiles
    kubeconfig: Path
    start_seconds: float = 0

    def client(self, *, token: str | None = None) -> httpx.Client:
        """Open a client for the administrator, or for whom the token names."""
        trust = ssl.create_default_context(cafile=self.authority.cert)
        if token is None:
            trust.load_cert_chain(self.admin.cert, self.admin.key)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, verify=trust, headers=headers, timeout=20, trust_env=False)

    def service_account_token(self, *, namespace: str, name: str) -> str:
        """Return a new token of a ServiceAccount, creating the account where there is none."""
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        with self.client() as api:
            created = api.post(accounts, json={"metadata": {"name": name}})
            assert created.status_code in (201, 409), created.text
            asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
            token: str = answer(api.post(f"{accounts}/{name}/token", json=asked))["status"]["token"]
        return token

    def kubeconfig_for(self, *, token: str) -> Path:
        """Write a kubeconfig for whom the token names."""
        path = self.folder / f"kubeconfig{next(_numbers)}"
        return kube_commands.write_kubeconfig(path, url=self.url, ca=self.authority.cert, user={"token": token})


def answer(response: httpx.Response) -> dict[str, Any]:
    """Return the object in a response that must be a success."""
    assert response.is_success, f"{response.request.method} {response.request.url}: {response.text}"
    found: dict[str, Any] = response.json()
    return found


def install_crd(api: httpx.Client, definition: Mapping[str, Any]) -> None:
    """Create a CRD and wait until its objects are served."""
    name, spec = definition["metadata"]["name"], definition["spec"]
    answer(api.post(CRDS, json=definition))
    for version in spec["versions"]:
        served = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
        wait_for(functools.partial(succeeds, api, served), what=f"{name} to be served")


def succeeds(api: httpx.Client, path: str) -> bool:
    """Tell whether a GET succeeds; one that finds nobody there does not."""
    try:
        return api.get(path).is_success
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def kube_cluster(
    programs: ControlPlane,
    *,
    folder: Path,
    durable: bool = False,
    with_crds: bool = True,
    on_log: Callable[[Path], None] = lambda _: None,
) -> Iterator[KubeCluster]:
    """Run a new control plane until the block ends.

    `durable` keeps etcd's fsync on, for measuring; without CRDs somebody else installs those of the agent; `on_log`
    hears of every log before the program writes to it.
    """
    begun = time.monotonic()
    etcd_port, peer_port, port = free_ports(3)
    etcd_url, peer_url, url = (
        f"http://127.0.0.1:{etcd_port}",
        f"http://127.0.0.1:{peer_port}",
        f"https://127.0.0.1:{port}",
    )
    ca = certificates.make_ca(folder)
    serving = ca.issue(cn="kube-apiserver", san=["127.0.0.1", "localhost", "kubernetes.default.svc"])
    accounts = ca.issue(cn="service-accounts", key=certificates.rsa_key())

    def kubeconfig(name: str, who: certificates.CertFiles) -> Path:
        user = kube_commands.by_certificate(who)
        return kube_commands.write_kubeconfig(folder / name, url=url, ca=ca.cert, user=user)

    admin = ca.issue(cn="admin", o=["system:masters"])
    manager = kubeconfig("kubeconfig-controllers", ca.issue(cn="system:kube-controller-manager"))
    cluster = KubeCluster(url=url, folder=folder, authority=ca, admin=admin, kubeconfig=kubeconfig("kubeconfig", admin))

    with contextlib.ExitStack() as stack:
        etcd_api = stack.enter_context(httpx.Client(base_url=etcd_url, trust_env=False))
        api = stack.enter_context(cluster.client())

        def start(command: Sequence[str], *, name: str, ready: Callable[[], bool]) -> None:
            log = folder / f"{name}.log"
            log.touch()
            on_log(log)
            process = stack.enter_context(running(command, log=log))
            # What the programs would still save when asked to stop is thrown away with the folder.
            stack.callback(process.kill)

            def look() -> bool:
                assert process.poll() is None, f"{name} ended:\n{tail(log)}"
                return ready()

            wait_for(look, what=f"{name} to be ready (see {log})", seconds=START_SECONDS)

        start(
            kube_commands.etcd(programs, data=folder / "etcd", url=etcd_url, peer_url=peer_url, durable=durable),
            name="etcd",
            ready=lambda: succeeds(etcd_api, "/health"),
        )
        start(
            kube_commands.apiserver(
                programs, port=port, etcd_url=etcd_url, ca=ca.cert, serving=serving, accounts=accounts
            ),
            name="kube-apiserver",
            ready=lambda: succeeds(api, "/readyz"),
        )
        # Before the controllers start, because the garbage collector looks for new kinds only twice a minute.
        for path in sorted(AGENT_CRDS.glob("*.yaml")) if with_crds else ():
            install_crd(api, yaml.safe_load(path.read_text()))
        start(
            kube_commands.controllers(programs, kubeconfig=manager, ca=ca.cert, accounts=accounts),
            name="kube-controller-manager",
            # A namespace takes no Pods before a controller has given it this account.
            ready=lambda: succeeds(api, "/api/v1/namespaces/default/serviceaccounts/default"),
        )
        yield dataclasses.replace(cluster, start_seconds=time.monotonic() - begun)
