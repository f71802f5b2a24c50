import json

import pytest

from maestropy.cli import main
from maestropy.trace import identifiers
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.identifiers import GivenIdentifiers
from maestropy.trace.work import identities

SAMPLE = GivenIdentifiers(
    source="mw-client-example",
    consumer="7ff1a8f4-8811-49b4-8c19-9271bc51975e",
    work_name="e44ec579-9646-549a-b679-db8d19d6da37",
    broker_host="maestro-mqtt-agent.maestro:1883",
    sequence="2011725044726730752",
)
RESOURCE_ID = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"
HUB = "f1d8a1049b93dffc1929d57a719c3a09a4dcbfe0cd6e42840325be3b2dde73c8"


def test_identifiers_of_a_known_sample() -> None:
    found = json.loads(identifiers.as_json(identifiers.compute(SAMPLE)))
    assert found["resourceId"] == RESOURCE_ID
    assert found["appliedManifestWork"] == f"{HUB}-{RESOURCE_ID}"
    assert found["time"] == "2026-01-15T09:00:01.363Z"


def test_given_identifiers_are_checked() -> None:
    card = identifiers.compute(GivenIdentifiers(applied_work=f"{HUB}-{RESOURCE_ID}", broker_host=SAMPLE.broker_host))
    assert (card.resource_id, card.contradictions) == (RESOURCE_ID, ())
    other = identifiers.compute(GivenIdentifiers(applied_work=f"{HUB}-{RESOURCE_ID}", broker_host="elsewhere:1883"))
    assert other.contradictions == ("its hub hash is not that of --broker-host",)


def test_pubsub_agent_has_the_hash_of_an_empty_address() -> None:
    assert identities.hub_hash("") == identities.NO_ADDRESS


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param(GivenIdentifiers(), "give --source", id="nothing"),
        pytest.param(GivenIdentifiers(source="s"), "--consumer, --work-name missing", id="half"),
        pytest.param(GivenIdentifiers(sequence="-1"), "not a sequence ID", id="bad-sequence"),
        pytest.param(GivenIdentifiers(applied_work="short"), "not the name of an AppliedManifestWork", id="bad-name"),
    ],
)
def test_invalid_identifiers_are_rejected(given: GivenIdentifiers, complaint: str) -> None:
    with pytest.raises(InvalidArguments, match=complaint):
        identifiers.compute(given)


def test_command_prints_identifiers(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"trace id --source {SAMPLE.source} --consumer {SAMPLE.consumer} --work-name {SAMPLE.work_name} -o json"
    assert main.call(line.split()) == 0
    assert json.loads(capsys.readouterr().out)["resourceId"] == RESOURCE_ID
    assert main.call(["trace", "id", "--sequence", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("Error: ")
