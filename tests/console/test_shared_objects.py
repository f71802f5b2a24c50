"""Other works with the same object are named and linked."""

from typing import Any

from maestropy.console import rows
from maestropy.console.pages import shared_objects
from maestropy.console.picture import Picture
from tests.console.fake_api import NOW, bundle

HUB = "a" * 64


def picture() -> Picture:
    found = Picture("test")
    found.put(rows.row(bundle(number), now=NOW) for number in (1, 11))
    return found


def test_owners_are_named_by_their_works_without_the_work_itself_and_unknown_ones() -> None:
    owners = [f"{HUB}-id-0000001", f"{HUB}-id-0000011", f"{HUB}-id-0000011", f"{HUB}-gone", "odd"]
    others = shared_objects.others(picture(), owners, work_id="id-0000001")
    assert others == [{"id": "id-0000011", "name": "work-11", "consumer": "cluster1", "link": "#/work/id-0000011"}]


def test_finding_and_verdict_name_the_other_work() -> None:
    others = shared_objects.others(picture(), [f"{HUB}-id-0000011"], work_id="id-0000001")
    finding: dict[str, Any] = {"code": "MW-110", "title": "An object belongs to several works."}
    model: dict[str, Any] = {"code": "MW-110", "summary": finding["title"], "findings": [finding]}
    shared_objects.name(model, others)
    assert model["summary"] == "An object belongs to several works: also to work-11."
    assert finding["works"] == others


def test_other_findings_and_unknown_works_stay_as_they_are() -> None:
    finding: dict[str, Any] = {"code": "MW-005", "title": "Rejected."}
    model: dict[str, Any] = {"code": "MW-005", "summary": "Rejected.", "findings": [finding]}
    shared_objects.name(model, [])
    shared_objects.name(model, [{"id": "x", "name": "x", "consumer": "c", "link": "#/work/x"}])
    assert model == {"code": "MW-005", "summary": "Rejected.", "findings": [{"code": "MW-005", "title": "Rejected."}]}
