"""The tracer as a pod of the cluster: no kubeconfig, only what Kubernetes mounts and sets; over TLS, with RBAC."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import harness
import pytest
import trace_stage
from test_trace_work import applied, id_of
from trace_stage import Stage, config_map

from maestropy.kube.request import ResourceType
from maestropy.store.dsn import Dsn
from maestropy.trace.access.choosing import Place, Wanted, management_clusters
from maestropy.trace.access.cluster import Cluster
from maestropy.trace.errors import NoAccess
from maestropy.trace.output import Exit
from maestropy.trace.work import gather, render, report
from maestropy.trace.work.question import Question

RBAC = "rbac.authorization.k8s.io"
ACCOUNT = {"kind": "ServiceAccount", "name": "tracer", "namespace": "default"}


def kind(group: str, plural: str, name: str, *, namespaced: bool = False) -> ResourceType:
    return ResourceType(group=group, version="v1", plural=plural, kind=name, namespaced=namespaced)


async def allow(stage: Stage) -> None:
    """Give the pod's account the rights that the page about tracing names."""
    api = f"{RBAC}/v1"
    rules = [
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    ]
    role = {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": "tracer"}, "rules": rules}
    await stage.kube.create(kind(RBAC, "clusterroles", "ClusterRole"), role)
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "tracer"}
    binding = {
        "apiVersion": api,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "tracer"},
        "roleRef": reference,
        "subjects": [ACCOUNT],
    }
    await stage.kube.create(kind(RBAC, "clusterrolebindings", "ClusterRoleBinding"), binding)


def pod(stage: Stage, folder: Path, *, token: str) -> Place:
    """Mount an account's token as Kubernetes does, and set what it sets."""
    folder.mkdir(exist_ok=True)
    assert stage.sandbox.ca_file
    (folder / "ca.crt").write_bytes(stage.sandbox.ca_file.read_bytes())
    (folder / "namespace").write_text("default")
    (folder / "token").write_text(token)
    server = urlsplit(stage.sandbox.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(server.hostname),
        "KUBERNETES_SERVICE_PORT": str(server.port),
        # A pod comes before this: it is what the image's environment happens to say.
        "KUBECONFIG": "/nowhere",
    }
    return Place(environ=environ, home=Path("/nowhere"), service_account=folder)


async def traced(stage: Stage, place: Place, name: str) -> report.Report:
    (choice,) = management_clusters(Wanted(), place)
    async with Cluster(choice) as cluster:
        sides: Any = gather.Sides(database=stage.database, clusters=[cluster])
        return await stage.ask(Question(entry="resource-id", values=(id_of(name),)), sides=sides)


def test_a_pod_needs_no_kubeconfig(database: Dsn, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with trace_stage.stage(database) as stage:
            await applied(stage, "web", config_map("web"))
            stage.sandbox.add_service_account_token("first", "default", "tracer")
            place = pod(stage, tmp_path / "account", token="first")

            without_rights = await traced(stage, place, "web")
            assert without_rights.exit == Exit.INCONCLUSIVE
            assert "forbidden" in render.text(without_rights).lower()

            await allow(stage)
            found = await traced(stage, place, "web")
            assert [each.verdict.code for each in found.works] == ["MW-001"], render.text(found)
            assert found.works[0].facts.lines[0].is_live

            # The kubelet rotates tokens: the file counts, not what it held at the start.
            stage.sandbox.add_service_account_token("second", "default", "tracer")
            (tmp_path / "account" / "token").write_text("second")
            assert (await traced(stage, place, "web")).exit == Exit.HEALTHY
            (tmp_path / "account" / "token").write_text("nobody's")
            refused = await traced(stage, place, "web")
            assert refused.exit == Exit.INCONCLUSIVE
            assert "nobody's" not in render.text(refused)

            (tmp_path / "account" / "token").unlink()
            with pytest.raises(NoAccess, match="token is missing: the pod has no service account token"):
                management_clusters(Wanted(), place)

    harness.play(scenario())
