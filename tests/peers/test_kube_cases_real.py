"""The cases that describe a Kubernetes API hold on a real one, and the sandbox answers as it does.

Every case runs twice, on the real API server and on the sandbox, in namespaces of one name; then the answers are laid
side by side. A difference is a fault of the sandbox.
"""

import functools
import itertools
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.conformance import kube_cases
from tests.conformance.kube_client import Kube
from tests.conformance.sandbox_thread import Running, sandbox
from tests.peers.kube_cluster import KubeCluster, answer
from tests.waiting import wait_for

pytestmark = pytest.mark.peers

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with sandbox(delay=0.01) as found:
        yield found


@pytest.mark.parametrize("case", kube_cases.CASES.values(), ids=kube_cases.CASES.keys())
def test_case(case, real_cluster: KubeCluster, running: Running) -> None:
    name = f"case{next(NUMBERS)}x{os.getpid()}"
    records = []
    for cluster in (real_cluster, running):
        with cluster.client() as api:
            prepare(api, name)
            kube = Kube(
                api=api,
                namespace=name,
                token_client=functools.partial(lambda to, token: to.client(token=token), cluster),
            )
            case(kube)
            records.append(kube.record)
            api.delete(f"/api/v1/namespaces/{name}")
    real, ours = records
    found = list(differences(real, ours))
    if found:
        pytest.fail("the sandbox answers otherwise:\n" + "\n".join(found), pytrace=False)


def prepare(api: httpx.Client, name: str) -> None:
    answer(api.post("/api/v1/namespaces", json={"metadata": {"name": name}}))
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_for(lambda: api.get(account).is_success, what="the account of the namespace")


def differences(real: Any, ours: Any, path: str = "") -> Iterator[str]:
    if isinstance(real, dict) and isinstance(ours, dict):
        for key in real | ours:
            yield from differences(real.get(key, "<absent>"), ours.get(key, "<absent>"), f"{path}.{key}")
    elif isinstance(real, (list, tuple)) and isinstance(ours, (list, tuple)) and len(real) == len(ours):
        for index, (left, right) in enumerate(zip(real, ours, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif real != ours:
        yield f"{path}: real {real!r}, ours {ours!r}"
