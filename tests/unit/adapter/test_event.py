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


def test_a_byte_order_mark_before_the_event_is_accepted() -> None:
    assert event.parse(b"\xef\xbb\xbf" + json.dumps(DATA).encode()).resource_id == "abc"


def test_a_version_of_another_specification_in_headers_is_rejected() -> None:
    headers = {f"ce-{name}": value for name, value in {**ENVELOPE, "specversion": "0.3"}.items()}
    with pytest.raises(MalformedEvent, match=r"specversion is '0\.3', and must be '1\.0'"):
        event.parse(json.dumps(DATA), headers)


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
        ('{"id": "a", "id": "b", "kind": "Cluster", "generation": 1}', 'an object has the key "id" twice; keep one'),
        ('{"id": "a", "kind": "Cluster", "generation": 1e400}', "generation is infinite, or too large for a float"),
        ('{"id": "a", "kind": "Cluster", "generation": 1, "spec": {"a": NaN}}', "spec.a is not a number (NaN)"),
        (b'{"id": "\xff"}', "the event is not UTF-8 (byte 8); save it as UTF-8"),
        ('{"id": "a", "generation": ' + "9" * 5000 + "}", "a number has more than 400 digits"),
        ("[" * 100_000, "100 levels deep"),
        ('{"specversion": "2.0", "data": {}}', "specversion is '2.0', and must be '1.0'"),
        ('{"specversion": 1.0, "data": {}}', "specversion is 1.0, and must be '1.0'"),
        ('{"specversion": "1.0", "source": 5, "data": {}}', "source is 5, and must be a string that is not empty"),
        ('{"specversion": "1.0", "source": "", "data": {}}', "source is '', and must be a string that is not empty"),
        ('{"id": "a", "kind": "Cluster", "generation": 0}', "from 1 to 2147483647"),
        ('{"id": "a", "kind": "Cluster", "generation": 2147483648}', "from 1 to 2147483647"),
        (
            '{"specversion": "1.0", "type": "com.redhat.hyperfleet.nodepool.reconcile", "data": {"kind": "Cluster"}}',
            "kind is 'Cluster', and the type of the event is that of a 'nodepool'",
        ),
    ],
)
def test_malformed_event_names_every_problem(body: bytes | str, message: str) -> None:
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


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": "../../admin?x=1#"}, "id"),
        ({"id": ".."}, "id"),
        ({"id": "a b"}, "id"),
        ({"id": "a%2fb"}, "id"),
        ({"id": "a\u0000"}, "id"),
        ({"href": "/stolen/x"}, "href"),
        ({"href": "http://elsewhere/stolen/x"}, "href"),
        ({"href": "/api/../admin/abc"}, "href"),
        ({"href": "/api/hyperfleet/v1/clusters/abc?x=1"}, "href"),
        ({"href": "http://["}, "href"),
        ({"href": "//elsewhere/abc"}, "href"),
        ({"href": "abc"}, "href"),
        ({"owner_references": {"id": "../x"}}, "owner_references.id"),
    ],
)
def test_event_does_not_choose_another_path_of_the_api(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedEvent, match=rf"{field} is "):
        event.parse(json.dumps({**ENVELOPE, "data": DATA | changes}))


def test_url_of_the_resource_is_taken() -> None:
    href = "https://api.example/api/hyperfleet/v1/clusters/abc"
    assert event.parse(json.dumps({**ENVELOPE, "data": DATA | {"href": href}})).href == href


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({**DATA, "id": "a" * 300_000, "href": ""}, "id has 300000 characters, and must have at most 255"),
        ({**DATA, "kind": "K" * 300}, "kind has 300 characters"),
        ({**DATA, "href": "/x" * 2000 + "/abc"}, "href has 4004 characters, and must have at most 2048"),
        ({**DATA, "owner_references": {"id": "o" * 300}}, r"owner_references\.id has 300 characters"),
        ({**ENVELOPE, "id": "e" * 300_000, "data": DATA}, "id of the event has 300000 characters"),
    ],
)
def test_text_that_is_too_long_is_rejected_and_not_repeated(body: dict[str, Any], message: str) -> None:
    with pytest.raises(MalformedEvent, match=message) as caught:
        event.parse(json.dumps(body))
    assert len(str(caught.value)) < 500
