"""The Kubernetes API of the sandbox passes the conformance cases that a real API server defines."""

import itertools
from collections.abc import Iterator

import pytest

from tests.conformance import kube_cases
from tests.conformance.kube_client import Kube
from tests.conformance.sandbox_thread import Running, sandbox

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with sandbox(delay=0.01) as started:
        yield started


@pytest.fixture
def kube(running: Running) -> Iterator[Kube]:
    name = f"case{next(NUMBERS)}"
    with running.client() as api:
        api.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
        yield Kube(api=api, namespace=name, token_client=running.client)


@pytest.mark.parametrize("case", kube_cases.CASES.values(), ids=kube_cases.CASES.keys())
def test_case(case, kube: Kube) -> None:
    case(kube)
