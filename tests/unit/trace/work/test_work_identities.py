import json

import pytest

from maestropy.cli import main
from maestropy.trace import identitycard
from maestropy.trace.errors import BadQuestion
from maestropy.trace.identitycard import Given
from maestropy.trace.work import identities

SAMPLE = Given(
    source="mw-client-example",
    consumer="7ff1a8f4-8811-49b4-8c19-9271bc51975e",
    work_name="e44ec579-9646-549a-b679-db8d19d6da37",
    broker_host="maestro-mqtt-agent.maestro:1883",
    sequence="2011725044726730752",
)
RESOURCE_ID = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"
HUB = "f1d8a1049b93dffc1929d57a719c3a09a4dcbfe0cd6e42840325be3b2dde73c8"


def test_the_identities_of_a_known_sample() -> None:
    found = json.loads(identitycard.as_json(identitycard.compute(SAMPLE)))
    assert found["resourceId"] == RESOURCE_ID
    assert found["appliedManifestWork"] == f"{HUB}-{RESOURCE_ID}"
    assert found["time"] == "2026-01-15T09:00:01.363Z"


def test_the_reverse_check() -> None:
    card = identitycard.compute(Given(applied_work=f"{HUB}-{RESOURCE_ID}", broker_host=SAMPLE.broker_host))
    assert (card.resource_id, card.contradictions) == (RESOURCE_ID, ())
    other = identitycard.compute(Given(applied_work=f"{HUB}-{RESOURCE_ID}", broker_host="elsewhere:1883"))
    assert other.contradictions == ("its hub hash is not that of --broker-host",)


def test_an_agent_on_pubsub_has_the_hash_of_nothing() -> None:
    assert identities.hub_hash("") == identities.NO_ADDRESS


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        pytest.param(Given(), "give --source", id="nothing"),
        pytest.param(Given(source="s"), "--consumer, --work-name missing", id="half"),
        pytest.param(Given(sequence="-1"), "no sequence id", id="bad-sequence"),
        pytest.param(Given(applied_work="short"), "no name of an AppliedManifestWork", id="bad-name"),
    ],
)
def test_what_cannot_be_computed_is_said(given: Given, complaint: str) -> None:
    with pytest.raises(BadQuestion, match=complaint):
        identitycard.compute(given)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"trace id --source {SAMPLE.source} --consumer {SAMPLE.consumer} --work-name {SAMPLE.work_name} -o json"
    assert main.call(line.split()) == 0
    assert json.loads(capsys.readouterr().out)["resourceId"] == RESOURCE_ID
    assert main.call(["trace", "id", "--sequence", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("Error: ")
