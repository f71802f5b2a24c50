"""The strip of hops: the first one that does not do its part."""

import pytest

from maestropy.console.pages import hops
from maestropy.console.pages.hops import Known
from maestropy.trace.findings.codes import CODES

HEALTHY = Known(
    code="MW-001", summary="fine", stored=1.0, requested=1.0, version=1, observed=1, objects=2, objects_applied=2
)


def stop(known: Known) -> tuple[str, str]:
    stops = [hop for hop in hops.strip(known) if hop["isStop"]]
    assert len(stops) <= 1
    return (stops[0]["hop"], stops[0]["state"]) if stops else ("", "")


def test_healthy_work_has_no_stop() -> None:
    strip = hops.strip(HEALTHY)
    assert [hop["hop"] for hop in strip] == list(hops.HOPS)
    assert [hop["state"] for hop in strip] == ["ok"] * 7 + ["unknown"]
    assert stop(HEALTHY) == ("", "")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (Known(code="MW-003", summary="", stored=1.0, version=1), ("agent", "broken")),
        (Known(code="MW-002", summary="", stored=1.0, version=1), ("agent", "waiting")),
        (Known(code="MW-002", summary="", stored=1.0, version=1, agent="away"), ("agent", "broken")),
        (Known(code="MW-002", summary="", stored=1.0, version=1, is_unpublished=True), ("broker", "waiting")),
        (
            Known(code="MW-003", summary="", stored=1.0, version=1, is_unpublished=True, agent="away"),
            ("agent", "broken"),
        ),
        (Known(code="MW-005", summary="", stored=1.0, version=1, observed=1, objects=1), ("cluster", "broken")),
        (Known(code="MW-105", summary="", stored=1.0, version=1), ("status", "broken")),
        (Known(code="MW-009", summary=""), ("database", "broken")),
    ],
)
def test_verdict_names_the_first_broken_hop(known: Known, expected: tuple[str, str]) -> None:
    assert stop(known) == expected


def test_status_of_an_older_version_is_not_shown_as_done() -> None:
    known = Known(code="MW-004", summary="", stored=1.0, version=2, observed=1, objects=1, objects_applied=1)
    states = {hop["hop"]: hop["state"] for hop in hops.strip(known)}
    assert (states["agent"], states["cluster"], states["status"]) == ("broken", "old", "old")


def test_every_verdict_about_a_work_that_needs_attention_has_a_hop() -> None:
    about_queries = {"MW-011", "MW-100", "MW-117", "MW-118", "MW-119", "MW-120", "MW-121"}
    codes = {code for code, entry in CODES.items() if code.startswith("MW-") and entry.severity != "info"}
    for code in codes - about_queries:
        assert stop(Known(code=code, summary="", stored=1.0, version=1))[0], code
