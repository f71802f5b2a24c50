import json

import pytest

from maestropy.adapter.transports import kubernetes_record
from maestropy.sdk import errors
from tests.unit.adapter.samples import work


@pytest.mark.parametrize(
    ("path", "value"),
    [(".status.ready", 3), (".status", {"ready": 3}), ("@", {"status": {"ready": 3}})],
)
def test_value_at_path(path: str, value: object) -> None:
    assert kubernetes_record.value_at({"status": {"ready": 3}}, path) == value


def test_a_name_in_a_path_may_have_an_escaped_dot() -> None:
    live = {"metadata": {"annotations": {"a.io/b": "1"}}}
    assert kubernetes_record.value_at(live, r".metadata.annotations.a\.io/b") == "1"


def test_path_with_index_is_rejected() -> None:
    with pytest.raises(errors.Invalid, match="more than names and dots"):
        kubernetes_record.value_at({}, ".status.conditions[0]")


def test_config_map_holds_no_manifest_content() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "d"}, "data": {"k": "djE="}}
    record = kubernetes_record.record(work().add(secret), namespace="default", version=3)
    assert "djE=" not in json.dumps(record)
    read = kubernetes_record.work_of(record, [{"status": {"a": 1}}, None])
    assert (read.name, read.version, read.observed_version) == ("w-abc", 3, 3)
    assert read.feedback("status") == {"a": 1}
    applied = read.condition("Applied")
    assert applied
    assert (applied.status, applied.message) == ("False", "1 of 2 objects are not there")
