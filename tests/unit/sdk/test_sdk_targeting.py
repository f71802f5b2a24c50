"""Where works go."""

import asyncio
from pathlib import Path

import pytest

from maestropy import errors, targeting
from maestropy.sdk.targeting import Candidate


def where(target: targeting.Target) -> str:
    return asyncio.run(target.consumer())


def test_named_once_or_in_the_environment_or_in_a_file(tmp_path: Path) -> None:
    assert where(targeting.static("us-east-mgmt-01")) == "us-east-mgmt-01"
    assert where(targeting.from_environment(environ={targeting.VARIABLE: " c1\n"})) == "c1"
    file = tmp_path / "management_cluster_consumer"
    target = targeting.from_file(file)
    file.write_text("c1\n")
    assert where(target) == "c1"
    file.write_text("c2\n")
    assert where(target) == "c2"
    file.write_text("data:\n  consumer: c3\n")
    assert where(targeting.from_file(file, key="consumer")) == "c3"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        pytest.param(lambda: targeting.static("Not A Name"), "consumer is 'Not A Name'", id="name"),
        pytest.param(
            lambda: targeting.from_environment(environ={}), "MANAGEMENT_CLUSTER_CONSUMER is not set", id="unset"
        ),
        pytest.param(lambda: targeting.from_file("/nowhere"), "/nowhere cannot be read", id="no-file"),
    ],
)
def test_mistakes_name_their_place(make: object, complaint: str) -> None:
    with pytest.raises(errors.ConfigError, match=complaint):
        where(make())  # type: ignore[operator]


def test_in_turn_and_by_load() -> None:
    found = [Candidate(consumer="b", load=1), Candidate(consumer="a", load=2), Candidate(consumer="c")]

    async def query() -> list[Candidate]:
        return found

    turns = targeting.from_query(query)
    assert [where(turns) for _ in range(4)] == ["a", "b", "c", "a"]
    least = targeting.from_query(query, choose=targeting.least_loaded)
    assert [where(least) for _ in range(2)] == ["b", "b"]
    found.clear()
    with pytest.raises(errors.NotFound):
        where(turns)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ([{"name": "a"}], [Candidate(consumer="a")]),
        ({"items": [{"id": "7", "name": "a", "load": 3}]}, [Candidate(consumer="a", load=3.0)]),
        ([], []),
    ],
)
def test_the_list_of_management_clusters(answer: object, found: list[Candidate]) -> None:
    assert targeting.candidates(answer) == found


@pytest.mark.parametrize("answer", [{}, 7, [1], [{"region": "x"}]])
def test_a_list_that_is_none_is_refused(answer: object) -> None:
    with pytest.raises(errors.Invalid):
        targeting.candidates(answer)
