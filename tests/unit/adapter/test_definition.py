from typing import Any

import pytest

from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import BadAdapter, UnknownKind
from maestropy.adapter.tooling import scaffold
from maestropy.sdk.work import Work
from tests.unit.adapter.samples import MAP


def work_of(_: Any, cluster: Any) -> Work:
    return Work(f"w-{cluster.id}").add(MAP, feedback={"status": ".status"})


def test_handler_is_found_by_kind_in_any_case() -> None:
    adapter = Adapter("a")
    adapter.reconciles("Cluster")(work_of)
    assert adapter.handler("cluster") is adapter.handler("Cluster") is work_of
    with pytest.raises(UnknownKind, match="it has functions for: Cluster"):
        adapter.handler("NodePool")


def test_second_function_for_a_kind_is_rejected() -> None:
    adapter = Adapter("a")
    adapter.reconciles("Cluster")(work_of)
    with pytest.raises(BadAdapter, match="two functions for Cluster"):
        adapter.reconciles("Cluster")(work_of)


def test_async_handler_is_rejected() -> None:
    with pytest.raises(BadAdapter, match="the function for NodePool is async"):
        Adapter("a").reconciles("NodePool")(_asynchronous)  # type: ignore[type-var]


def test_invalid_adapter_name_is_rejected() -> None:
    with pytest.raises(BadAdapter, match="the adapter's name is 'A B'"):
        Adapter("A B")
    with pytest.raises(BadAdapter, match="the adapter's name is"):
        scaffold.files("A B")


async def _asynchronous(*_: Any) -> Any:
    return None
