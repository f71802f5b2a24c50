"""Our server asks a real Kubernetes who a source is and what it may do.

The server itself runs as a ServiceAccount that may review and nothing else, as an operator would set it up.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest

from maestropy.wire.events import event, grpc_binding
from tests import certificates
from tests.peers import peer_postgres
from tests.peers.kube_cluster import KubeCluster, answer
from tests.peers.peer_clients import rest
from tests.peers.peer_servers import RunningServer, python_server
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONSUMER = "cluster1"
HOME = "maestro"
BOTH = ("pub", "sub")
NUMBERS = itertools.count(1)

OK = "OK"
NOT_PUBLISHED = "PERMISSION_DENIED: unauthorized to publish the event from source {}"
NOT_SUBSCRIBED = "PERMISSION_DENIED: unauthorized to subscribe the event from source {}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A running server and how to knock at it."""

    cluster: KubeCluster
    server: RunningServer
    ca: bytes

    def publish(self, *, source: str, token: str | None) -> str:
        """Publish a new bundle; return `OK` or how it was refused."""
        request = grpc_binding.encode_publish(new_bundle(source))
        with self._channel() as channel:
            try:
                channel.unary_unary(grpc_binding.PUBLISH_METHOD)(request, metadata=credentials(token), timeout=20)
            except grpc.RpcError as error:
                return told(error)
        return OK

    def subscribe(self, *, source: str, token: str | None) -> str:
        """Subscribe to statuses; return `OK` once the server has taken the subscription, or how it was refused."""
        wanted = grpc_binding.Subscription(source=source, data_type=event.MANIFEST_BUNDLES)
        request = grpc_binding.encode_subscription(wanted)
        with self._channel() as channel:
            call = channel.unary_stream(grpc_binding.SUBSCRIBE_METHOD)(request, metadata=credentials(token), timeout=20)
            if "subscription-id" in dict(call.initial_metadata()):
                call.cancel()
                return OK
            return told(call)

    def _channel(self) -> Any:
        return grpc.secure_channel(self.server.grpc_addr, grpc.ssl_channel_credentials(self.ca))


def told(error: Any) -> str:
    return f"{error.code().name}: {error.details()}"


def credentials(token: str | None) -> tuple[tuple[str, str | bytes], ...]:
    return (("authorization", f"Bearer {token}"),) if token else ()


def new_bundle(source: str) -> event.CloudEvent:
    name = f"bundle-{next(NUMBERS)}"
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    extensions: dict[str, event.Attribute] = {
        event.RESOURCE_ID: f"{source}-{name}",
        event.RESOURCE_VERSION: 0,
        event.CLUSTER_NAME: CONSUMER,
        event.METADATA: json.dumps({"name": name, "namespace": CONSUMER}),
    }
    data = json.dumps({"manifests": [manifest]}).encode()
    return event.CloudEvent(
        id=f"event-of-{name}", source=source, type=event.SPEC_CREATE, extensions=extensions, data=data
    )


def grant(cluster: KubeCluster, *, to: dict[str, str], urls: Sequence[str], verbs: Sequence[str]) -> None:
    """Let a subject use the verbs on the non-resource URLs."""
    name = f"gate{next(NUMBERS)}"
    with cluster.client() as api:
        rule = {"nonResourceURLs": list(urls), "verbs": list(verbs)}
        answer(api.post(f"{RBAC}/clusterroles", json={"metadata": {"name": name}, "rules": [rule]}))
    bind(cluster, role=name, to=to)


def bind(cluster: KubeCluster, *, role: str, to: dict[str, str]) -> None:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    binding = {"metadata": {"name": f"gate{next(NUMBERS)}"}, "roleRef": reference, "subjects": [to]}
    with cluster.client() as api:
        answer(api.post(f"{RBAC}/clusterrolebindings", json=binding))


def account(name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "namespace": HOME, "name": name}


@pytest.fixture(scope="module")
def home(real_cluster: KubeCluster) -> KubeCluster:
    """The cluster with the server's namespace."""
    with real_cluster.client() as api:
        made = api.post("/api/v1/namespaces", json={"metadata": {"name": HOME}})
        if made.status_code != 409:  # the tests of the manifests may have made it
            answer(made)
    return real_cluster


def gate_flags(cluster: KubeCluster, folder: Path, *, as_account: str) -> tuple[list[str], bytes]:
    ca = certificates.make_ca(folder)
    serving = ca.issue(cn="maestro", san=["127.0.0.1"])
    token = cluster.service_account_token(namespace=HOME, name=as_account)
    flags = [
        f"--grpc-tls-cert-file={serving.cert}",
        f"--grpc-tls-key-file={serving.key}",
        "--grpc-authn-type=token",
        f"--grpc-authorizer-config={cluster.kubeconfig_for(token=token)}",
    ]
    return flags, ca.cert.read_bytes()


@pytest.fixture(scope="module")
def gate(
    home: KubeCluster,
    postgres: peer_postgres.Cluster,
    tmp_path_factory: pytest.TempPathFactory,
    shown_logs: list[Path],
) -> Iterator[Gate]:
    bind(home, role="system:auth-delegator", to=account("maestro-server"))
    folder = tmp_path_factory.mktemp("gate")
    flags, ca = gate_flags(home, folder, as_account="maestro-server")
    with python_server(database=postgres.create("gate"), folder=folder, flags=flags) as server:
        rest(server, "POST", "/consumers", {"name": CONSUMER})
        shown_logs.append(server.log)
        yield Gate(cluster=home, server=server, ca=ca)
        shown_logs.remove(server.log)


@pytest.mark.parametrize(
    ("granted", "published", "subscribed"),
    [
        pytest.param(BOTH, OK, OK, id="pub-and-sub"),
        pytest.param(("pub",), OK, NOT_SUBSCRIBED, id="pub-only"),
        pytest.param(("sub",), NOT_PUBLISHED, OK, id="sub-only"),
        pytest.param((), NOT_PUBLISHED, NOT_SUBSCRIBED, id="neither"),
        pytest.param(("get",), NOT_PUBLISHED, NOT_SUBSCRIBED, id="another-verb"),
    ],
)
def test_an_account_may_do_what_its_role_says(
    gate: Gate, granted: tuple[str, ...], published: str, subscribed: str
) -> None:
    name = source = f"source{next(NUMBERS)}"
    token = gate.cluster.service_account_token(namespace=HOME, name=name)
    if granted:
        grant(gate.cluster, to=account(name), urls=[f"/sources/{source}"], verbs=granted)
        # The API server's authorizer learns of new roles by watching them; ours must not remember the time before.
        wait_until_known(gate.cluster, name, path=f"/sources/{source}", verb=granted[-1])
    assert gate.publish(source=source, token=token) == published.format(source)
    assert gate.subscribe(source=source, token=token) == subscribed.format(source)


def test_a_role_for_one_source_opens_no_other(gate: Gate) -> None:
    token = gate.cluster.service_account_token(namespace=HOME, name="narrow")
    grant(gate.cluster, to=account("narrow"), urls=["/sources/narrow"], verbs=BOTH)
    wait_until_known(gate.cluster, "narrow", path="/sources/narrow", verb="sub")
    assert gate.publish(source="narrow", token=token) == OK
    assert gate.publish(source="narrower", token=token) == NOT_PUBLISHED.format("narrower")
    assert gate.subscribe(source="", token=token).startswith("INVALID_ARGUMENT: ")


def test_a_role_may_come_by_group_and_by_wildcard(gate: Gate) -> None:
    namespace = "team"
    with gate.cluster.client() as api:
        answer(api.post("/api/v1/namespaces", json={"metadata": {"name": namespace}}))
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"system:serviceaccounts:{namespace}"}
    grant(gate.cluster, to=group, urls=["/sources/*"], verbs=BOTH)
    token = gate.cluster.service_account_token(namespace=namespace, name="member")
    wait_for(lambda: gate.publish(source="any-of-them", token=token) == OK, what="the grant to be known")
    assert gate.subscribe(source="any-of-them", token=token) == OK


def test_a_grant_that_comes_later_takes_effect(gate: Gate) -> None:
    token = gate.cluster.service_account_token(namespace=HOME, name="late")
    assert gate.publish(source="late", token=token) == NOT_PUBLISHED.format("late")
    grant(gate.cluster, to=account("late"), urls=["/sources/late"], verbs=BOTH)
    wait_for(lambda: gate.publish(source="late", token=token) == OK, what="the grant to be known", seconds=10)


@pytest.mark.parametrize(
    ("token", "refused"),
    [
        pytest.param(None, "UNAUTHENTICATED: invalid token", id="no-token"),
        pytest.param("not-a-token", "UNAUTHENTICATED: token not authenticated", id="garbage"),
        pytest.param("{}x", "UNAUTHENTICATED: token not authenticated", id="spoilt-signature"),
    ],
)
def test_who_cannot_be_known_is_refused(gate: Gate, token: str | None, refused: str) -> None:
    good = gate.cluster.service_account_token(namespace=HOME, name="known")
    shown = token and token.format(good)
    assert gate.publish(source="known", token=shown) == refused
    assert gate.subscribe(source="known", token=shown) == refused


def test_the_token_of_a_deleted_account_is_refused(gate: Gate) -> None:
    token = gate.cluster.service_account_token(namespace=HOME, name="deleted")
    with gate.cluster.client() as api:
        answer(api.delete(f"/api/v1/namespaces/{HOME}/serviceaccounts/deleted"))
    wait_for(
        lambda: gate.publish(source="deleted", token=token) == "UNAUTHENTICATED: token not authenticated",
        what="the account's end to be known",
    )


def test_server_without_review_permission_rejects_every_client(
    home: KubeCluster, postgres: peer_postgres.Cluster, tmp_path: Path
) -> None:
    flags, ca = gate_flags(home, tmp_path, as_account="powerless")
    token = home.service_account_token(namespace=HOME, name="turned-away")
    with python_server(database=postgres.create("powerless"), folder=tmp_path, flags=flags) as server:
        gate = Gate(cluster=home, server=server, ca=ca)
        refused = gate.publish(source="turned-away", token=token)
        log = server.log.read_text()
    assert refused.startswith("UNAVAILABLE: failed to review the token: ")
    assert "create on tokenreviews.authentication.k8s.io" in refused
    assert token not in log


def wait_until_known(cluster: KubeCluster, name: str, *, path: str, verb: str) -> None:
    user = f"system:serviceaccount:{HOME}:{name}"
    spec = {"user": user, "nonResourceAttributes": {"path": path, "verb": verb}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    with cluster.client() as api:
        where = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        wait_for(lambda: answer(api.post(where, json=body))["status"]["allowed"], what=f"{user} to have its role")
