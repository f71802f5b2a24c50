from typing import Any

import pytest

from maestropy.sdk._operations import changes
from maestropy.sdk.errors import Invalid
from maestropy.sdk.work import Work
from maestropy.wire import timestamps
from maestropy.wire.works import status
from maestropy.wire.works import work as wire
from tests.unit.sdk.samples import HOSTED, SECRET, bundle


@pytest.mark.parametrize(
    ("change", "unchanged"),
    [
        pytest.param(lambda work: work, True, id="same"),
        pytest.param(lambda work: work.with_annotations({f"{wire.TRACING_PREFIX}op-id": "7"}), True, id="operation-id"),
        pytest.param(lambda work: work.with_labels({"a": "b"}), False, id="label"),
        pytest.param(lambda work: work.add(HOSTED), False, id="manifest"),
        pytest.param(lambda work: work.delete_option("Orphan"), False, id="delete-option"),
        pytest.param(lambda work: work.executor(namespace="n", name="s"), False, id="executor"),
    ],
)
def test_unchanged_work_is_detected(change: Any, unchanged: bool) -> None:
    stored = Work.from_resource_bundle(bundle(SECRET))
    desired = change(Work("w").add(SECRET))
    assert changes.is_unchanged(stored.manifest_work, desired.manifest_work) is unchanged


@pytest.mark.parametrize(("reason", "is_published"), [("OlderVersion", True), ("OtherDatabase", False), ("", False)])
def test_equal_work_is_published_when_the_agent_keeps_a_newer_version(reason: str, *, is_published: bool) -> None:
    stored = Work.from_resource_bundle(bundle(SECRET))
    if reason:
        hold = status.Condition(type=status.DATA_SAFETY_HOLD, status=status.TRUE, reason=reason)
        held = status.WorkStatus().with_condition(hold, now=timestamps.parse("2026-01-02T10:00:00Z"))
        stored = Work.wrap(stored.manifest_work.with_status(held))
    assert changes.has_nothing_to_publish(stored, Work("w").add(SECRET)) is not is_published


def test_a_patch_that_makes_no_work_is_invalid() -> None:
    with pytest.raises(Invalid, match="spec must be an object"):
        changes.patched(Work("a", consumer="c"), {"spec": 5})


def test_differences_have_their_path() -> None:
    changed: dict[str, Any] = {**SECRET, "data": {"k": "v"}}
    old, new = Work("w").add(SECRET), Work("w", labels={"a": "b"}).add(changed)
    assert changes.differences(old, new) == [
        ("metadata.labels", None, {"a": "b"}),
        ("spec.workload.manifests[0].data", None, {"k": "v"}),
    ]


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(target: Any, patch: Any, result: Any) -> None:
    assert changes.merge_patch(target, patch) == result
