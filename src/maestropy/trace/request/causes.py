"""Why a stage is missing: the decision table, evaluated.

Evidence of the request itself comes first; then what the components say near the gap; at last the plain absence. Pure.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from maestropy.trace.request.codes import code_of_apply_error
from maestropy.trace.request.hits import LARGE, Hit, What
from maestropy.trace.request.inputs import Environment, Presence
from maestropy.trace.request.model import Confidence, Finding
from maestropy.trace.request.visibility import Blind
from maestropy.trace.request.wishes import Wish

PLAIN: Final = {
    1: "MT-101", 2: "MT-209", 3: "MT-306", 4: "MT-412", 5: "MT-503", 6: "MT-603", 7: "MT-708", 8: "MT-803", 9: "MT-905",
}  # fmt: skip
_NEAR: Final[dict[int, tuple[tuple[What, str, str], ...]]] = {
    1: ((What.UNAUTHORISED, "server", "MT-102"),),
    2: (
        (What.PUBLISH_FAILED, "server", "MT-204"),
        (What.LISTENER_LOST, "server", "MT-203"),
        (What.DISCONNECTED, "server", "MT-204"),
    ),
    3: (
        (What.OTHER_CLUSTER, "agent", "MT-302"),
        (What.DISCONNECTED, "agent", "MT-301"),
        (What.FOREIGN_EVENT, "agent", "MT-305"),
    ),
    5: ((What.DISCONNECTED, "agent", "MT-501"),),
    6: ((What.DISCONNECTED, "server", "MT-601"), (What.DISCONNECTED, "agent", "MT-501")),
    7: ((What.DATABASE, "server", "MT-707"),),
    8: ((What.PUBLISH_FAILED, "server", "MT-802"), (What.LISTENER_LOST, "server", "MT-801")),
    9: ((What.STREAM_BROKEN, "server", "MT-903"), (What.SLOW_CLIENT, "server", "MT-904")),
}
_BEFORE = 60.0
_MOST_NAMED = 5
_OF_STATUS_EVENTS = ("status event", "failed to get resource")
_TOO_LARGE = ("too large", "larger than max", "max_packet_size", "maximum packet size")
_REFUSALS = (
    ("unauthorized to ", "MT-102"),
    ("failed to authorize", "MT-102"),
    ("failed to parse cloud event type", "MT-103"),
    ("unsupported action", "MT-103"),
    ("unsupported cloudevents data type", "MT-103"),
)
_SLACK = 1.0


def of_failure(stage: int, hits: Sequence[Hit]) -> Finding:
    """Return what explicit errors of the request at `stage` mean."""
    last = hits[-1]
    detail = last.detail
    if stage == 2:
        code = "MT-207" if last.what is What.HARD_DELETED else "MT-303" if _is_too_large(detail) else "MT-204"
    elif last.what is What.DECODE_FAILED:
        code = "MT-401"
    elif stage == 4:
        code = code_of_apply_error(detail)
    elif stage == 5:
        code = "MT-501"
    elif stage == 7:
        code = _of_status_error(detail) if last.what is What.STATUS_FAILED else "MT-701"
    else:
        code = "MT-905"
    return Finding(code=code, confidence="certain", detail=detail, evidence=tuple(hits[-3:]))


def of_refusal(reason: str) -> str:
    """Return the finding that a server's refusal means."""
    if _is_too_large(reason):
        return "MT-303"
    return next((code for words, code in _REFUSALS if words in reason), "MT-201")


def _of_status_error(detail: str) -> str:
    if "unmatched consumer name" in detail:
        return "MT-702"
    return "MT-602" if "original source" in detail else "MT-707"


def of_absence(
    stage: int, wish: Wish, environment: Environment, components: Sequence[Hit], *, since: float, until: float
) -> Finding:
    """Return the likeliest reason why `stage` did not come between `since` and `until`."""
    consumer, source = wish.first("consumer"), _client_source(wish)
    if stage in (2, 3) and (absent := _absent_agent(consumer, environment, since=since)):
        return absent
    if stage == 3:
        mismatch = _topic_mismatch(consumer, environment, components)
        if mismatch is not None:
            return mismatch
    if stage == 4 and (remaining := held(wish, environment)):
        return Finding(
            code="MT-411",
            confidence="certain" if remaining[-1].what is What.PENDING_DELETION else "likely",
            detail=f"still there: {', '.join(dict.fromkeys(hit.detail for hit in remaining[:_MOST_NAMED]))}",
            evidence=tuple(remaining[-3:]),
        )
    if stage in (8, 9) and (nobody := nobody_listens(source, environment, at=since)):
        return nobody
    around = _between(components, since - _BEFORE, until)
    if stage in (2, 3) and (large := _too_large(around, since=since)):
        return large
    for what, role, code in _NEAR.get(stage, ()):
        near = [
            hit
            for hit in around
            if hit.what is what
            and environment.writers[hit.file].role == role
            and _concerns(hit, stage, since=since, consumer=consumer)
        ]
        if near:
            return Finding(code=code, confidence="likely", detail=near[-1].detail, evidence=tuple(near[-3:]))
    if stage == 3 and environment.broker != "grpc" and (large := _large_event(wish)):
        return large
    return Finding(code=PLAIN[stage], confidence="possible" if stage in (1, 2) else "likely")


def _is_too_large(error: str) -> bool:
    lower = error.lower()
    return any(words in lower for words in _TOO_LARGE)


def _too_large(around: Sequence[Hit], *, since: float) -> Finding | None:
    """Return a finding when a connection broke because of a message's size."""
    near = [
        hit
        for hit in around
        if hit.what is What.DISCONNECTED and hit.at >= since - _SLACK and _is_too_large(hit.detail)
    ]
    if not near:
        return None
    return Finding(code="MT-303", confidence="likely", detail=near[-1].detail, evidence=tuple(near[-3:]))


def _large_event(wish: Wish) -> Finding | None:
    """Return a finding when the whole event stands in a log, and is larger than brokers take."""
    large = [hit for hit in wish.hits if hit.stage in (1, 2) and hit.detail.startswith(LARGE)]
    if not large:
        return None
    return Finding(code="MT-303", confidence="likely", detail=large[-1].detail, evidence=(large[-1],))


def held(wish: Wish, environment: Environment) -> list[Hit]:
    """Return the records of objects whose deletion was asked for, and that nothing shows to be gone."""
    if wish.action != "delete":
        return []
    removed = {hit.detail: hit.at for hit in wish.stage(4) if hit.what is What.REMOVED}
    # Our agents say no more of what is gone at once; that it is not shows in a report that still says "deleting".
    still = max((report.at for report in wish.reports if report.has(What.UPDATE_SENT)), default=0.0)
    asked = [
        hit
        for hit in wish.stage(4)
        if hit.what is What.DELETING
        and removed.get(hit.detail, 0.0) < hit.at
        and (hit.at < still or not environment.writers[hit.file].is_ours)
    ]
    pending = [hit for hit in wish.stage(4) if hit.what is What.PENDING_DELETION]
    return asked or (pending if pending and pending[-1].at > max(removed.values(), default=0.0) else [])


def _between(components: Sequence[Hit], since: float, until: float) -> Sequence[Hit]:
    begin = bisect_left(components, since, key=lambda hit: hit.at)
    return components[begin : bisect_right(components, until, key=lambda hit: hit.at)]


def _concerns(hit: Hit, stage: int, *, since: float, consumer: str) -> bool:
    """Say whether what a component said may have to do with this stage."""
    if hit.what is What.PUBLISH_FAILED:
        is_of_status = any(words in hit.detail for words in _OF_STATUS_EVENTS)
        return hit.at >= since and is_of_status is (stage == 8)
    if hit.what is What.OTHER_CLUSTER:
        return hit.consumer == consumer
    return stage != 8 or "status_events" in hit.detail or not hit.detail


def elsewhere(environment: Environment, components: Sequence[Hit], *, since: float, until: float) -> Blind | None:
    """Return why a published event need not be in these logs: a server left an event to one whose log is not here."""
    if environment.broker == "grpc":
        return None  # there, every instance says so when no agent of the consumer is connected
    left = [hit for hit in _between(components, since, until) if hit.what is What.OTHER_INSTANCE]
    if not left:
        return None
    why = "another instance handled an event of this time, and its log is not here"
    return Blind("MT-205", why, "possible", tuple(left[:3]))


def _client_source(wish: Wish) -> str:
    return wish.asked.source if wish.asked else ""


def _absent_agent(consumer: str, environment: Environment, *, since: float) -> Finding | None:
    if not consumer or environment.broker != "grpc":
        return None
    mine = [each for each in environment.agents if each.name == consumer]
    if any(each.until > since and each.since <= max(since, environment.end) for each in mine):
        return None
    confidence: Confidence = "certain" if mine else "likely"
    if not mine and not any(each.started for each in environment.servers):
        return None  # it may have connected before the logs begin
    detail = f"no agent of {consumer} was subscribed" + ("; the last one has left" if mine else "")
    return Finding(code="MT-301", confidence=confidence, detail=detail)


def _topic_mismatch(consumer: str, environment: Environment, components: Sequence[Hit]) -> Finding | None:
    topics = [
        hit
        for hit in components
        if hit.what is What.SUBSCRIBED and "/consumers/" in hit.detail and environment.writers[hit.file].role == "agent"
    ]
    if not topics or not consumer or any(f"/consumers/{consumer}/" in hit.detail for hit in topics):
        return None
    return Finding(code="MT-302", confidence="likely", detail=topics[-1].detail, evidence=(topics[-1],))


def nobody_listens(source: str, environment: Environment, *, at: float) -> Finding | None:
    """Return a finding when the logs show that no client of `source` was subscribed at `at`."""

    def is_there(each: Presence) -> bool:
        return each.since <= at + 1 and each.until >= at

    present = [each for each in environment.clients if is_there(each)]
    if any(not source or each.name == source for each in present):
        return None
    if not all(each.started or each.first > at for each in environment.servers) and not environment.clients:
        return None  # somebody may have subscribed before the logs begin
    if present:
        others = ", ".join(sorted({each.name for each in present}))
        return Finding(code="MT-902", confidence="likely", detail=f"request of {source}, clients of {others}")
    return Finding(code="MT-901", confidence="likely", detail=f"no client of {source} was subscribed")
