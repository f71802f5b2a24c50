"""The tracer in a pod of the cluster: no kubeconfig, only the service account; over TLS, with RBAC."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from maestropy.kube.request import ResourceType
from maestropy.store.dsn import Dsn
from maestropy.trace.access.cluster import TracedCluster
from maestropy.trace.access.cluster_selection import ClusterOptions, KubeconfigLocation, management_clusters
from maestropy.trace.errors import NoAccess
from maestropy.trace.output import Exit
from maestropy.trace.work import gather
from maestropy.trace.work.query import WorkQuery
from maestropy.trace.work.report import render
from maestropy.trace.work.report import work_report as report
from tests.stack import trace_fleet
from tests.stack.test_trace_work import applied, id_of
from tests.stack.trace_fleet import TracedFleet, config_map

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = {"kind": "ServiceAccount", "name": "tracer", "namespace": "default"}


def kind(group: str, plural: str, name: str, *, namespaced: bool = False) -> ResourceType:
    return ResourceType(group=group, version="v1", plural=plural, kind=name, namespaced=namespaced)


async def allow(fleet: TracedFleet) -> None:
    """Give the pod's account the rights that the page about tracing names."""
    api = f"{RBAC}/v1"
    rules = [
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    ]
    role = {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "tracer"}, "rules": rules}
    await fleet.kube.create(kind(RBAC, "clusterroles", "ClusterRole"), role)
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tracer"}
    binding = {
        "apiVersion": api,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tracer"},
        "roleRef": reference,
        "subjects": [ACCOUNT],
    }
    await fleet.kube.create(kind(RBAC, "clusterrolebindings", "ClusterRoleBinding"), binding)


def pod(fleet: TracedFleet, folder: Path, *, token: str) -> KubeconfigLocation:
    """Mount an account's token as Kubernetes does, and set what it sets."""
    folder.mkdir(exist_ok=True)
    assert fleet.sandbox.ca_file
    (folder / "ca.crt").write_bytes(fleet.sandbox.ca_file.read_bytes())
    (folder / "namespace").write_text("default")
    (folder / "token").write_text(token)
    server = urlsplit(fleet.sandbox.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
        # A pod comes before this: it is what the image's environment happens to say.
        "KUBECONFIG": "/nowhere",
    }
    return KubeconfigLocation(environ=environ, home=Path("/nowhere"), service_account=folder)


async def traced(fleet: TracedFleet, place: KubeconfigLocation, name: str) -> report.WorkReport:
    (target,) = management_clusters(ClusterOptions(), place)
    async with TracedCluster(target) as cluster:
        readers: Any = gather.Readers(database=fleet.database, clusters=[cluster])
        return await fleet.ask(WorkQuery(entry="resource-id", values=(id_of(name),)), readers=readers)


async def test_a_pod_needs_no_kubeconfig(database: Dsn, tmp_path: Path) -> None:
    async with trace_fleet.fleet(database) as fleet:
        await applied(fleet, "web", config_map("web"))
        fleet.sandbox.add_service_account_token("first", "default", "tracer")
        place = pod(fleet, tmp_path / "account", token="first")

        without_rights = await traced(fleet, place, "web")
        assert without_rights.exit == Exit.INCONCLUSIVE
        assert "forbidden" in render.text(without_rights).lower()

        await allow(fleet)
        found = await traced(fleet, place, "web")
        assert [work.verdict.code for work in found.works] == ["MW-001"], render.text(found)
        assert found.works[0].facts.manifest_rows[0].is_live

        # The kubelet rotates tokens: the file counts, not what it held at the start.
        fleet.sandbox.add_service_account_token("second", "default", "tracer")
        (tmp_path / "account" / "token").write_text("second")
        assert (await traced(fleet, place, "web")).exit == Exit.HEALTHY
        (tmp_path / "account" / "token").write_text("nobody's")
        refused = await traced(fleet, place, "web")
        assert refused.exit == Exit.INCONCLUSIVE
        assert "nobody's" not in render.text(refused)

        (tmp_path / "account" / "token").unlink()
        with pytest.raises(NoAccess, match="token is missing: the pod has no service account token"):
            management_clusters(ClusterOptions(), place)
