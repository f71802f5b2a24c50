"""Server-side apply: laws that hold for any wishes of any managers."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maestropy.sandbox.kubeapi import builtin_types, fieldsets, merging, schema, ssa

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
words = st.sampled_from(["a", "b", "c"])
wishes = st.fixed_dictionaries(
    {"metadata": st.just({"name": "n"})},
    optional={
        "data": st.dictionaries(words, words, max_size=3),
        "struct": st.dictionaries(st.sampled_from("xyz"), words, max_size=3),
        "set": st.lists(words, unique=True, max_size=3),
        "atomic": st.lists(words, max_size=3),
        "items": st.dictionaries(words, words, max_size=3).map(
            lambda found: [{"name": name, "v": value} for name, value in found.items()]
        ),
    },
)
paths = st.frozensets(
    st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:0"]), min_size=1, max_size=4).map(tuple),
    max_size=6,
)


def write(name: str, *, force: bool = False, now: str = "T", operation: str = "Apply") -> ssa.Write:
    manager = ssa.Manager(name=name, operation=operation, api_version="v1")
    return ssa.Write(manager=manager, schema=CUSTOM, now=now, force=force, blank={"metadata": {}})


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """The object as far as it holds something: empty containers and ownership left out."""
    kept = {name: value for name, value in obj.items() if value not in ({}, []) and name != "metadata"}
    return {name: sorted(value, key=str) if name in ("set", "items") else value for name, value in kept.items()}


EMPTY: dict[str, Any] = {"metadata": {}}


@given(paths)
def test_fields_survive_their_written_form(owned: fieldsets.Paths) -> None:
    assert fieldsets.decode(fieldsets.encode(owned)) == owned


@given(wishes)
def test_applying_to_nothing_gives_the_wish(wish: dict[str, Any]) -> None:
    assert content(ssa.apply(EMPTY, wish, write("one"))) == content(wish)


@given(wishes, wishes)
def test_a_lone_manager_gets_exactly_what_it_last_wished(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = ssa.apply(ssa.apply(EMPTY, first, write("one")), second, write("one"))
    assert content(live) == content(second)


@given(wishes, wishes)
def test_applying_twice_changes_nothing_more(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = ssa.apply(ssa.apply(EMPTY, first, write("one")), second, write("two", force=True))
    # Where nobody owns anything, the next apply looks for earlier writers: that is another story.
    assume(ssa.read_entries(live))
    assert ssa.apply(live, second, write("two", now="later")) == live


@given(wishes, wishes)
def test_a_forced_wish_is_fulfilled_and_owned(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = ssa.apply(ssa.apply(EMPTY, first, write("one")), second, write("two", force=True))
    merged = merging.merge(live, second, CUSTOM)
    assert content(merged) == content(live)
    mine = next((each.paths for each in ssa.read_entries(live) if each.manager.name == "two"), frozenset())
    assert mine == merging.fields_of(second, CUSTOM) - {("f:metadata", "f:name")}


@given(wishes, wishes)
def test_a_manager_that_wishes_nothing_takes_only_its_own_along(first: dict[str, Any], second: dict[str, Any]) -> None:
    alone = ssa.apply(EMPTY, first, write("one"))
    try:
        both = ssa.apply(alone, second, write("two"))
    except ssa.Conflicts:
        return
    left = ssa.apply(both, {"metadata": {"name": "n"}}, write("two"))
    assert content(left) == content(alone)


@given(wishes, wishes)
def test_conflicts_name_fields_of_others_that_would_change(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = ssa.apply(EMPTY, first, write("one"))
    found = conflicts(live, second)
    owned = merging.fields_of(first, CUSTOM)
    assert all(manager.name == "one" and path in owned for manager, path in found)
    if not found:
        assert content(merging.merge(first, second, CUSTOM)) == content(ssa.apply(live, second, write("two")))


def conflicts(live: dict[str, Any], wish: dict[str, Any]) -> Any:
    try:
        ssa.apply(live, wish, write("two"))
    except ssa.Conflicts as refused:
        return refused.found
    return []


@given(wishes, wishes)
def test_an_ordinary_write_owns_what_it_changed_and_nobody_else_does(first: Any, second: Any) -> None:
    live = ssa.record_new({"metadata": {}}, first, write("one", operation="Update"))
    written = ssa.record_update(live, second, write("two", operation="Update"))
    entries = {each.manager.name: each.paths for each in ssa.read_entries(written)}
    if ssa.read_entries(live):
        assert not entries.get("one", frozenset()) & entries.get("two", frozenset())
        difference = merging.compare(first, second, CUSTOM)
        gone = difference.removed
        assert not any(path in gone for owned in entries.values() for path in owned)


@pytest.mark.parametrize(
    ("live", "wish", "result"),
    [
        pytest.param("ab", "ba", "ba", id="order-of-the-wish"),
        pytest.param("a", "b", "ab", id="others-first"),
        pytest.param("axb", "ab", "axb", id="others-keep-their-place"),
        pytest.param("abx", "cb", "acbx", id="new-before-shared"),
        pytest.param("xaby", "ba", "xbya", id="moved"),
    ],
)
def test_lists_merge_in_order(live: str, wish: str, result: str) -> None:
    merged = merging.merge({"set": list(live)}, {"set": list(wish)}, CUSTOM)
    assert merged["set"] == list(result)


def test_a_conflict_reads_as_people_know_it() -> None:
    def wish(image: str) -> dict[str, Any]:
        container = {"name": "web", "image": image, "ports": [{"containerPort": 80}]}
        return {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [container]}}}}

    def by(name: str, operation: str) -> ssa.Write:
        manager = ssa.Manager(name=name, operation=operation, api_version="apps/v1")
        return ssa.Write(manager=manager, schema=DEPLOYMENT, now="T", blank={"metadata": {}})

    live = ssa.record_new({"metadata": {}}, wish("a"), by("kubectl", "Update"))
    with pytest.raises(ssa.Conflicts) as caught:
        ssa.apply(live, wish("b"), by("agent", "Apply"))
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl" using apps/v1: '
        '.spec.template.spec.containers[name="web"].image'
    )
