"""The strip of hops: the first one that does not do its part."""

from dataclasses import replace

import pytest

from maestropy.console.pages import hops
from maestropy.console.pages.hops import Known
from maestropy.trace.findings.codes import CODES
from maestropy.trace.work.judge.deletion import STEPS, DeletionStep, StepState

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
        (
            Known(code="MW-003", summary="", stored=1.0, version=1, is_unpublished=True, agent="never"),
            ("agent", "broken"),
        ),
        (
            Known(code="MW-002", summary="", stored=1.0, version=1, is_unpublished=True, agent="never"),
            ("agent", "waiting"),
        ),
        (Known(code="MW-005", summary="", stored=1.0, version=1, observed=1, objects=1), ("cluster", "broken")),
        (Known(code="MW-105", summary="", stored=1.0, version=1), ("status", "broken")),
        (Known(code="MW-009", summary=""), ("database", "broken")),
    ],
)
def test_verdict_names_the_first_broken_hop(known: Known, expected: tuple[str, str]) -> None:
    assert stop(known) == expected


def steps(**states: StepState) -> tuple[DeletionStep, ...]:
    """Return the steps of a deletion; those that are not named are not known."""
    return tuple(
        DeletionStep(name=name, state=states.get(name.replace(" ", "_"), "unknown"), says=f"says {name}")
        for name in STEPS
    )


APPLIED = replace(HEALTHY, code="MW-007", summary="Deleting.")
NEW = Known(code="MW-007", summary="Deleting.", stored=1.0, version=1)


@pytest.mark.parametrize(
    ("known", "stopped", "states"),
    [
        (replace(APPLIED, deletion=steps(published="waiting"), agent="away"), ("agent", "broken"), "unknown unknown"),
        (replace(APPLIED, deletion=steps(published="waiting")), ("broker", "waiting"), "unknown unknown"),
        (replace(APPLIED, deletion=steps(published="done")), ("agent", "waiting"), "unknown unknown"),
        (replace(APPLIED, deletion=steps(deleting="done")), ("cluster", "waiting"), "waiting unknown"),
        (replace(APPLIED, deletion=steps(objects_gone="waiting")), ("cluster", "waiting"), "waiting unknown"),
        (replace(NEW, deletion=steps(published="waiting", deleting="done")), ("broker", "waiting"), "unknown unknown"),
        (replace(NEW, deletion=steps(deleting="done"), code="MW-101"), ("agent", "waiting"), "unknown unknown"),
        (replace(NEW, deletion=steps(), agent="never"), ("agent", "waiting"), "unknown unknown"),
    ],
    ids=[
        "agent-died-before", "not-published", "not-begun", "begun", "finalizer", "never-on-a-cluster",
        "never-on-a-readable-cluster", "no-agent-ever",
    ],
)  # fmt: skip
def test_hops_of_a_deletion_speak_of_the_deletion(known: Known, stopped: tuple[str, str], states: str) -> None:
    strip = {hop["hop"]: hop for hop in hops.strip(known)}
    assert stop(known) == stopped
    assert f"{strip['cluster']['state']} {strip['status']['state']}" == states
    assert "deletion of version 1" in strip["database"]["says"]
    assert "applied" not in strip["cluster"]["says"]
    if stopped[0] != "cluster":
        assert strip["agent"]["state"] != "ok"


def test_deletion_that_no_agent_takes_waits_for_it_and_was_told_to_nobody() -> None:
    known = replace(APPLIED, deletion=steps(published="waiting"), agent="away", delivered=5.0)
    strip = {hop["hop"]: hop for hop in hops.strip(known)}
    assert strip["broker"]["says"] == "the deletion waits for the agent"
    assert strip["subscribers"]["state"] == "unknown"


def test_hop_names_what_a_deletion_waits_for() -> None:
    strip = {hop["hop"]: hop for hop in hops.strip(replace(APPLIED, deletion=steps(objects_gone="waiting")))}
    assert "says objects gone" in strip["cluster"]["says"]


def test_status_of_an_older_version_is_not_shown_as_done() -> None:
    known = Known(code="MW-004", summary="", stored=1.0, version=2, observed=1, objects=1, objects_applied=1)
    states = {hop["hop"]: hop["state"] for hop in hops.strip(known)}
    assert (states["agent"], states["cluster"], states["status"]) == ("broken", "old", "old")


def test_every_verdict_about_a_work_that_needs_attention_has_a_hop() -> None:
    about_queries = {"MW-011", "MW-100", "MW-117", "MW-118", "MW-119", "MW-120", "MW-121"}
    codes = {code for code, entry in CODES.items() if code.startswith("MW-") and entry.severity != "info"}
    for code in codes - about_queries:
        assert stop(Known(code=code, summary="", stored=1.0, version=1))[0], code
