import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.adapter import event
from maestropy.adapter.errors import MalformedEvent

DATA = {"id": "abc", "kind": "Cluster", "href": "/api/hyperfleet/v1/clusters/abc", "generation": 5}
ENVELOPE = {
    "specversion": "1.0",
    "type": "com.redhat.hyperfleet.cluster.reconcile",
    "source": "hyperfleet-sentinel",
    "id": "e1",
}


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param({**ENVELOPE, "data": DATA}, {}, id="structured"),
        pytest.param(
            {**ENVELOPE, "data": DATA}, {"Content-Type": "application/cloudevents+json"}, id="structured-over-http"
        ),
        pytest.param(DATA, {f"CE-{name}": value for name, value in ENVELOPE.items()}, id="in-headers"),
    ],
)
def test_event_is_parsed_in_every_form(body: dict[str, Any], headers: dict[str, str]) -> None:
    parsed = event.parse(json.dumps(body), headers)
    assert (parsed.resource_id, parsed.kind, parsed.generation, parsed.id) == ("abc", "Cluster", 5, "e1")


def test_missing_kind_is_taken_from_the_event_type() -> None:
    data = {name: value for name, value in DATA.items() if name != "kind"}
    assert event.parse(json.dumps({**ENVELOPE, "data": data})).kind == "Cluster"


@pytest.mark.parametrize("owner", [{"id": "c1"}, [{"id": "c1"}]], ids=["object", "list"])
def test_owner_of_node_pool(owner: object) -> None:
    assert event.parse(json.dumps({**DATA, "kind": "NodePool", "owner_references": owner})).owner_id == "c1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("no json", "failed to unmarshal the event"),
        ("[]", "expected a JSON object"),
        ("{}", "id is missing, generation is missing, kind is missing"),
        ('{"specversion": "1.0", "data": "text"}', "data of the event is not an object"),
        ('{"id": 7, "kind": "Cluster", "generation": 1}', "id must be a string"),
        ('{"id": "a", "kind": "Cluster", "generation": "5"}', "generation is '5', and must be a whole number"),
        ('{"id": "a", "kind": "Cluster", "generation": true}', "generation is True"),
        ('{"id": "a", "kind": "Cluster", "generation": 0}', "from 1 to 2147483647"),
        ('{"id": "a", "kind": "Cluster", "generation": 2147483648}', "from 1 to 2147483647"),
    ],
)
def test_malformed_event_names_every_problem(body: str, message: str) -> None:
    with pytest.raises(MalformedEvent) as raised:
        event.parse(body)
    assert message in str(raised.value)


@given(
    st.binary(max_size=200) | st.text(max_size=200) | st.builds(json.dumps, st.dictionaries(st.text(), st.integers()))
)
def test_any_input_is_an_event_or_malformed(body: bytes | str) -> None:
    try:
        event.parse(body)
    except MalformedEvent:
        pass


def test_event_from_environment_variables() -> None:
    parsed = event.from_environment({"CLUSTER_ID": "abc", "GENERATION": "5"})
    assert parsed
    assert (parsed.resource_id, parsed.kind, parsed.generation) == ("abc", "Cluster", 5)
    assert event.from_environment({}) is None
    with pytest.raises(MalformedEvent, match="generation is missing"):
        event.from_environment({"CLUSTER_ID": "abc"})
