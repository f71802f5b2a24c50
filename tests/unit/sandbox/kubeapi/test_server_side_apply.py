"""Server-side apply: rules that hold for any apply configurations of any field managers."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi.apply import field_merge, field_sets, server_side_apply
from maestropy.sandbox.kubeapi.schemas import builtin_types, schema

DEPLOYMENT = builtin_types.schema_of("apps", "v1", "Deployment")
CUSTOM = schema.from_openapi(
    {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "struct": {"type": "object", "properties": {name: {"type": "string"} for name in "xyz"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "atomic": {"type": "array", "items": {"type": "string"}},
            "items": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "v": {"type": "string"}}},
            },
        },
    }
)
letters = st.sampled_from(["a", "b", "c"])
configurations = st.fixed_dictionaries(
    {"metadata": st.just({"name": "n"})},
    optional={
        "data": st.dictionaries(letters, letters, max_size=3),
        "struct": st.dictionaries(st.sampled_from("xyz"), letters, max_size=3),
        "set": st.lists(letters, unique=True, max_size=3),
        "atomic": st.lists(letters, max_size=3),
        "items": st.dictionaries(letters, letters, max_size=3).map(
            lambda values: [{"name": name, "v": value} for name, value in values.items()]
        ),
    },
)
paths = st.frozensets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:0"]), min_size=1, max_size=4).map(tuple),
    max_size=6,
)


def write(
    name: str, *, force: bool = False, now: str = "T", operation: str = "Apply"
) -> server_side_apply.WriteContext:
    manager = server_side_apply.FieldManager(name=name, operation=operation, api_version="v1")
    return server_side_apply.WriteContext(manager=manager, schema=CUSTOM, now=now, force=force, blank={"metadata": {}})


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as far as it holds something: empty containers and ownership left out."""
    kept = {name: value for name, value in obj.items() if value not in ({}, []) and name != "metadata"}
    return {name: sorted(value, key=str) if name in ("set", "items") else value for name, value in kept.items()}


EMPTY: dict[str, Any] = {"metadata": {}}


@given(paths)
def test_field_set_round_trips_through_fields_v1(owned: field_sets.Paths) -> None:
    assert field_sets.decode(field_sets.encode(owned)) == owned


@given(configurations)
def test_first_apply_gives_the_configuration(config: dict[str, Any]) -> None:
    assert content(server_side_apply.apply(EMPTY, config, write("one"))) == content(config)


@given(configurations, configurations)
def test_single_manager_gets_exactly_its_last_configuration(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = server_side_apply.apply(server_side_apply.apply(EMPTY, first, write("one")), second, write("one"))
    assert content(live) == content(second)


@given(configurations, configurations)
def test_second_apply_of_same_configuration_changes_nothing(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = server_side_apply.apply(
        server_side_apply.apply(EMPTY, first, write("one")), second, write("two", force=True)
    )
    # Without managedFields the next apply records earlier writers, which is a change.
    assume(server_side_apply.read_entries(live))
    assert server_side_apply.apply(live, second, write("two", now="later")) == live


@given(configurations, configurations)
def test_forced_apply_sets_and_owns_its_fields(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = server_side_apply.apply(
        server_side_apply.apply(EMPTY, first, write("one")), second, write("two", force=True)
    )
    merged = field_merge.merge(live, second, CUSTOM)
    assert content(merged) == content(live)
    own_paths = next(
        (entry.paths for entry in server_side_apply.read_entries(live) if entry.manager.name == "two"), frozenset()
    )
    assert own_paths == field_merge.fields_of(second, CUSTOM) - {("f:metadata", "f:name")}


@given(configurations, configurations)
def test_empty_apply_removes_only_the_managers_own_fields(first: dict[str, Any], second: dict[str, Any]) -> None:
    alone = server_side_apply.apply(EMPTY, first, write("one"))
    try:
        both = server_side_apply.apply(alone, second, write("two"))
    except server_side_apply.Conflicts:
        return
    remaining = server_side_apply.apply(both, {"metadata": {"name": "n"}}, write("two"))
    assert content(remaining) == content(alone)


@given(configurations, configurations)
def test_conflicts_list_changed_fields_of_other_managers(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = server_side_apply.apply(EMPTY, first, write("one"))
    conflicting = conflicts(live, second)
    owned = field_merge.fields_of(first, CUSTOM)
    assert all(manager.name == "one" and path in owned for manager, path in conflicting)
    if not conflicting:
        assert content(field_merge.merge(first, second, CUSTOM)) == content(
            server_side_apply.apply(live, second, write("two"))
        )


def conflicts(live: dict[str, Any], config: dict[str, Any]) -> Any:
    try:
        server_side_apply.apply(live, config, write("two"))
    except server_side_apply.Conflicts as error:
        return error.conflicts
    return []


@given(configurations, configurations)
def test_update_owns_the_fields_it_changed(first: Any, second: Any) -> None:
    live = server_side_apply.record_new({"metadata": {}}, first, write("one", operation="Update"))
    written = server_side_apply.record_update(live, second, write("two", operation="Update"))
    entries = {entry.manager.name: entry.paths for entry in server_side_apply.read_entries(written)}
    if server_side_apply.read_entries(live):
        assert not entries.get("one", frozenset()) & entries.get("two", frozenset())
        difference = field_merge.compare(first, second, CUSTOM)
        gone = difference.removed
        assert not any(path in gone for owned in entries.values() for path in owned)


@pytest.mark.parametrize(
    ("live", "config", "result"),
    [
        pytest.param("ab", "ba", "ba", id="order-of-the-configuration"),
        pytest.param("a", "b", "ab", id="live-items-first"),
        pytest.param("axb", "ab", "axb", id="live-items-keep-their-position"),
        pytest.param("abx", "cb", "acbx", id="new-before-shared"),
        pytest.param("xaby", "ba", "xbya", id="moved"),
    ],
)
def test_list_merge_order(live: str, config: str, result: str) -> None:
    merged = field_merge.merge({"set": list(live)}, {"set": list(config)}, CUSTOM)
    assert merged["set"] == list(result)


def test_conflict_message_is_that_of_kubernetes() -> None:
    def configuration(image: str) -> dict[str, Any]:
        container = {"name": "web", "image": image, "ports": [{"containerPort": 80}]}
        return {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [container]}}}}

    def by(name: str, operation: str) -> server_side_apply.WriteContext:
        manager = server_side_apply.FieldManager(name=name, operation=operation, api_version="apps/v1")
        return server_side_apply.WriteContext(manager=manager, schema=DEPLOYMENT, now="T", blank={"metadata": {}})

    live = server_side_apply.record_new({"metadata": {}}, configuration("a"), by("kubectl", "Update"))
    with pytest.raises(server_side_apply.Conflicts) as caught:
        server_side_apply.apply(live, configuration("b"), by("agent", "Apply"))
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: '
        '.spec.template.spec.containers[name="web"].image'
    )
