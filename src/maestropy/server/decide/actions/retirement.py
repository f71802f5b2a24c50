"""Decide whether a dead consumer may be retired, and plan what becomes of its works. Pure.

Refused while an agent may still be there: released works would be managed by nobody, although their agent runs.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from maestropy.server.decide.actions import plans
from maestropy.server.decide.actions.plans import Plan, Refusal
from maestropy.store import rows
from maestropy.wire import errors, ordering, timestamps
from maestropy.wire.events import event, stored_event

SILENCE: Final = timedelta(minutes=10)
"""How long no server may have seen an agent of the consumer; agents are noted once a minute."""

Fate = Literal["release", "delete"]

_QUIET_AGENT: Final = (
    "The message broker does not say which agents are connected: one that has had nothing to report for "
    f"{SILENCE.total_seconds() / 60:.0f} minutes is not seen. Check on the cluster that no agent runs"
)


def plan(
    facts: rows.ConsumerFacts,
    works: Sequence[rows.NamedWork],
    versions: Sequence[rows.WorkVersion],
    *,
    fate: Fate,
    now: datetime,
    sees_agents: bool,
) -> Plan | Refusal:
    """Plan to retire a consumer, or say why it is refused.

    Args:
        facts: The consumer.
        works: The first of its works, for people.
        versions: All of its works.
        fate: What becomes of them.
        now: The time.
        sees_agents: Whether the server knows which agents are connected, also when they send nothing.
    """
    refusal = _refusal(facts, now=now)
    if refusal is not None:
        return refusal
    describe = _release if fate == "release" else _deletion
    return Plan(
        action=f"retire --{fate}",
        consumer=facts.name,
        effects=tuple(describe(facts)),
        warnings=() if sees_agents else (_QUIET_AGENT,),
        is_change=fate == "release" or facts.works > facts.deleting,
        works=works,
        work_count=facts.works,
        pin=plans.pin(f"{fate} {facts.id}", versions),
    )


def _refusal(facts: rows.ConsumerFacts, *, now: datetime) -> Refusal | None:
    agent, minutes = f"the agent of consumer {facts.name}", f"{SILENCE.total_seconds() / 60:.0f} minutes"
    if facts.has_go_servers:
        return Refusal(
            reason=f"A Go server runs on this database, and does not say whether {agent} is connected to it; stop the "
            "Go servers first"
        )
    if facts.seen_at is not None and now - facts.seen_at < SILENCE:
        return Refusal(
            reason=f"The agent of consumer {facts.name} was seen at {plans.moment(facts.seen_at)}; stop it, and retire "
            f"the consumer when it has not been seen for {minutes}"
        )
    if facts.servers_since is None or now - facts.servers_since < SILENCE:
        since = "No server is ready" if facts.servers_since is None else _since(facts.servers_since)
        return Refusal(
            reason=f"{since}, so {agent} may not have come back yet; try again when a server has been running for "
            f"{minutes}"
        )
    return None


def _release(facts: rows.ConsumerFacts) -> list[str]:
    works = plans.counted(facts.works)
    return [
        f"Remove {works} of consumer {facts.name} from the database, and the consumer itself.",
        "Their objects stay on the cluster, and nobody manages them any more.",
        "Their sources are told that the works are gone (condition Deleted with the reason Released).",
        "An agent that comes back under this name holds its works (UnknownConsumer), and deletes nothing.",
    ]


def _deletion(facts: rows.ConsumerFacts) -> list[str]:
    live = facts.works - facts.deleting
    if not live:
        return [
            f"Nothing: no work of consumer {facts.name} is left to delete; {facts.deleting} wait for its agent.",
            f"If the agent never comes back: maestro consumer retire {facts.name} --release.",
        ]
    already = f" {facts.deleting} are being deleted already." if facts.deleting else ""
    return [
        f"Mark {plans.counted(live)} of consumer {facts.name} for deletion.{already}",
        "If an agent of this name comes back, it deletes their objects and confirms it; then the works are gone.",
        "The consumer stays until then: delete it afterwards with maestro consumer delete.",
    ]


def _since(time: datetime) -> str:
    return f"The servers run only since {plans.moment(time)}"


def release_status(stored: rows.StoredStatus, *, event_id: str, by: str, now: datetime) -> str:
    """Return the last status of a released work: what its source receives.

    It says Deleted, because sources end a work by that; by `released`, servers keep the objects on the cluster.
    """
    created, deleted = stored_event.event_times(stored.created_at, stored.deleted_at or now)
    time = timestamps.from_datetime(now)
    condition = {
        "type": "Deleted",
        "status": "True",
        "reason": "Released",
        "message": f"consumer {stored.consumer} was retired by {by}; the objects stay on its cluster",
        "lastTransitionTime": time.rfc3339(),
    }
    data = msgspec.json.encode({"conditions": [condition], "resourceStatus": []})
    status = event.CloudEvent(
        id=event_id,
        source=stored.consumer,
        type=f"{event.MANIFEST_BUNDLES}.status.{event.EventAction.UPDATE_REQUEST}",
        time=time,
        content_type="application/json",
        extensions={
            event.RESOURCE_ID: stored.id,
            event.RESOURCE_VERSION: stored.version,
            event.CLUSTER_NAME: stored.consumer,
            event.ORIGINAL_SOURCE: stored.source,
            event.SEQUENCE_ID: _next_sequence_id(stored.sequence_id, now=now),
            event.RELEASED: "true",
        },
        data=data,
    )
    metadata = "{}"
    try:
        if stored.metadata:
            metadata = stored_event.metadata_with(stored.metadata, stored_event.timestamp_members(created, deleted))
    except errors.WireError:
        pass  # damaged metadata must not keep the others from being released
    parts = stored_event.StoredParts(envelope=stored_event.envelope_of(status), metadata=metadata.encode(), data=data)
    return parts.document()


def _next_sequence_id(last: str, *, now: datetime) -> str:
    """Return a sequence ID that sources take for newer than the last status of the agent."""
    try:
        previous = int(ordering.parse(last)) if last else 0
    except errors.WireError:
        previous = 0
    return str(ordering.next_id(previous, now_ms=int(now.timestamp() * 1000)))
