"""What the history says about a new and an updated spec: names of paths, never values."""

import json
from typing import Any

import pytest

from maestropy.server.decide.history import kinds, spec_changes
from maestropy.wire.events import stored_event

CONFIG_MAP = {"kind": "ConfigMap", "metadata": {"name": "cm", "namespace": "default"}, "data": {"a": "1"}}
SECRET = {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"password": "aHVudGVyMg=="}}


def parts(*manifests: Any, metadata: Any = None, **more: Any) -> stored_event.StoredParts:
    return stored_event.StoredParts(
        envelope=b"{}",
        metadata=json.dumps({"name": "work"} if metadata is None else metadata).encode(),
        data=json.dumps({"manifests": list(manifests), **more}).encode(),
    )


def changes(before: stored_event.StoredParts, after: stored_event.StoredParts) -> Any:
    return json.loads(spec_changes.updated(before, after)).get("changes", [])


def changed(manifest: Any, **data: Any) -> Any:
    return {**manifest, "data": data}


def test_new_work_is_summarised_by_its_objects() -> None:
    detail = json.loads(spec_changes.created(parts(CONFIG_MAP, {"kind": "Namespace", "metadata": {"name": "n"}})))
    digest = detail.pop("digest")
    assert len(digest) == 16
    assert detail == {"name": "work", "manifests": 2, "objects": ["ConfigMap default/cm", "Namespace n"]}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            parts(CONFIG_MAP), parts(changed(CONFIG_MAP, a="2")), ["~ ConfigMap default/cm: data.a"], id="value"
        ),
        pytest.param(
            parts(CONFIG_MAP),
            parts(changed(CONFIG_MAP, b="1")),
            ["- ConfigMap default/cm: data.a", "+ ConfigMap default/cm: data.b"],
            id="key",
        ),
        pytest.param(parts(CONFIG_MAP), parts(CONFIG_MAP, SECRET), ["+ Secret default/s"], id="object-added"),
        pytest.param(parts(CONFIG_MAP, SECRET), parts(SECRET), ["- ConfigMap default/cm"], id="object-removed"),
        pytest.param(parts(CONFIG_MAP, SECRET), parts(SECRET, CONFIG_MAP), [], id="order-of-manifests"),
        pytest.param(
            parts(metadata={"name": "work", "labels": {"a": "1"}}),
            parts(metadata={"name": "work", "labels": {"a": "2"}}),
            ["~ metadata.labels.a"],
            id="label",
        ),
        pytest.param(
            parts(metadata={"generation": 1, "uid": "u"}),
            parts(metadata={"generation": 2, "uid": "v"}),
            [],
            id="volatile",
        ),
        pytest.param(parts(), parts(deleteOption={"propagationPolicy": "Orphan"}), ["+ deleteOption"], id="option"),
        pytest.param(
            parts(changed(CONFIG_MAP, a=[1, 2])),
            parts(changed(CONFIG_MAP, a=[1, 3, 4])),
            ["~ ConfigMap default/cm: data.a[1]", "+ ConfigMap default/cm: data.a[2]"],
            id="list",
        ),
        pytest.param(
            parts(changed(CONFIG_MAP, a=1)),
            parts(changed(CONFIG_MAP, a=True)),
            ["~ ConfigMap default/cm: data.a"],
            id="one-is-not-true",
        ),
        pytest.param(parts("text"), parts("other"), ["~ manifests[0]"], id="manifest-is-no-object"),
    ],
)
def test_update_names_the_changed_paths(
    before: stored_event.StoredParts, after: stored_event.StoredParts, expected: list[str]
) -> None:
    assert changes(before, after) == expected


def test_values_never_appear() -> None:
    before, after = parts(SECRET, CONFIG_MAP), parts(changed(SECRET, password="c2VjcmV0LXR3bw=="), CONFIG_MAP)
    texts = [spec_changes.created(before), spec_changes.updated(before, after)]
    assert changes(before, after) == ["~ Secret default/s: data.password"]
    for text in texts:
        assert "aHVudGVyMg" not in text
        assert "c2VjcmV0" not in text


@pytest.mark.parametrize(
    "data",
    [
        json.dumps({"manifests": [SECRET]}).encode(),
        json.dumps({"manifests": [{"kind": "List", "items": [SECRET]}]}).encode(),
        b'{"manifests":[{"kind":"\\u0053ecret"}]}',
        b"",
    ],
    ids=["secret", "nested", "escaped", "empty"],
)
def test_spec_with_a_secret_has_no_digest(data: bytes) -> None:
    assert spec_changes.digest(data) == ""


def test_huge_and_hostile_changes_are_bounded() -> None:
    wide = {f"\x1b[31m{'k' * 5000}{number}\0": "v" for number in range(500)}
    deep: Any = {}
    for _ in range(200):
        deep = {"d": deep, "n": len(json.dumps(deep))}
    before, after = parts(changed(CONFIG_MAP)), parts(changed(CONFIG_MAP, **wide, deep=deep))
    detail = spec_changes.updated(before, after)
    assert len(detail.encode()) <= kinds.MAX_DETAIL_BYTES
    assert json.loads(detail)["truncated"] is True
    assert "\0" not in detail
    many = parts(*({**CONFIG_MAP, "metadata": {"name": "n" * 250 + str(number)}} for number in range(300)))
    created = spec_changes.created(many)
    assert len(created.encode()) <= kinds.MAX_DETAIL_BYTES
    assert (json.loads(created)["manifests"], json.loads(created)["truncated"]) == (300, True)


def test_damaged_stored_spec_is_replaced_as_a_whole() -> None:
    damaged = stored_event.StoredParts(envelope=b"{}", metadata=b"{", data=b"[")
    assert changes(damaged, parts(CONFIG_MAP)) == ["~ spec"]
    assert json.loads(spec_changes.created(damaged)) != {}
    assert spec_changes.deletion(damaged) == "{}"


def test_deletion_by_an_operator_is_told_from_one_by_the_source() -> None:
    assert "action" not in json.loads(spec_changes.deletion(parts(CONFIG_MAP)))
    assert json.loads(spec_changes.deletion(parts(CONFIG_MAP), is_from_operator=True))["action"] == "delete"
