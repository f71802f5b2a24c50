"""Plan the actions on delivery: resend a work, resync a consumer, pause and resume delivery to a consumer. Pure."""

from collections.abc import Sequence

from maestropy.server.decide.actions import plans
from maestropy.server.decide.actions.plans import Plan
from maestropy.store import rows

_GO_SERVER = (
    "A Go server runs on this database. It does not know pauses, and goes on sending to this consumer. Stop it if "
    "nothing may be sent"
)
_RESTARTED_GO_AGENT = (
    "A Go agent that restarts during the pause has no works until the resumption, and may remove their objects after "
    "its eviction grace period (60 minutes by default). The agent of maestropy keeps them"
)


def resend(work: rows.NamedWork, *, is_waiting: bool, pause: rows.Pause | None) -> Plan:
    """Plan to send a work again, in its current version."""
    name = _named(work)
    if work.is_deleting:
        effects = [
            f"Send the deletion of {name} to the agent of consumer {work.consumer} again.",
            "The agent deletes its objects, or confirms again that they are gone.",
        ]
    else:
        effects = [
            f"Send version {work.version} of {name} to the agent of consumer {work.consumer} again.",
            f"An agent that does not have version {work.version} applies it; for one that has it, nothing changes.",
        ]
    if is_waiting:
        effects = [f"Nothing: {name} waits for delivery already, and is sent as soon as its agent can be reached."]
    return Plan(
        action="resend",
        consumer=work.consumer,
        effects=tuple(effects),
        warnings=_paused(pause),
        is_change=not is_waiting,
        works=[work],
        work_count=1,
    )


def resync(facts: rows.ConsumerFacts, works: Sequence[rows.NamedWork], *, is_connected: bool | None = None) -> Plan:
    """Plan to send all works of a consumer again, and to ask its agent for everything.

    `is_connected` says whether an agent has a stream to this instance; None: the message broker does not say.
    """
    effects = [
        f"Send all works of consumer {facts.name} ({facts.works}) again, as fast as its agent takes them.",
        "Works that the agent has in the same version do not change.",
        "Let the agent compare its works with the database, and report the statuses that the server does not have.",
    ]
    if is_connected is not None:
        effects.append(
            "For that, end the streams of its agents: they reconnect at once, and the history has a disconnect and a "
            "connect."
        )
    return Plan(
        action="resync",
        consumer=facts.name,
        effects=tuple(effects),
        warnings=(*_paused(facts.pause), *(_absent(facts) if is_connected is False else ())),
        works=works,
        work_count=facts.works,
    )


def pause(facts: rows.ConsumerFacts, works: Sequence[rows.NamedWork]) -> Plan:
    """Plan to pause the delivery to a consumer."""
    if facts.pause is not None:
        return Plan(
            action="pause",
            consumer=facts.name,
            effects=(f"Nothing: {plans.paused(facts.pause)}.",),
            is_change=False,
            works=works,
            work_count=facts.works,
        )
    effects = (
        f"Send no specs and no deletions to consumer {facts.name} ({plans.counted(facts.works)}) until it is resumed.",
        "Requests of sources are stored and acknowledged, and wait. Statuses of the agent are stored as always.",
        "Nothing changes on the cluster: the agent keeps what it has. What was sent before the pause still arrives.",
    )
    warnings = [_RESTARTED_GO_AGENT]
    if facts.has_go_servers:
        warnings.insert(0, _GO_SERVER)
    return Plan(
        action="pause",
        consumer=facts.name,
        effects=effects,
        warnings=tuple(warnings),
        works=works,
        work_count=facts.works,
    )


def resume(facts: rows.ConsumerFacts, works: Sequence[rows.NamedWork]) -> Plan:
    """Plan to resume the delivery to a consumer. All works are sent: an agent may have restarted during the pause."""
    if facts.pause is None:
        effects: tuple[str, ...] = (f"Nothing: delivery to consumer {facts.name} is not paused.",)
    else:
        since, reason = plans.moment(facts.pause.paused_at), facts.pause.reason
        why = f": {reason}" if reason else ""
        effects = (
            f"Resume the delivery to consumer {facts.name}, paused since {since} by {facts.pause.paused_by}{why}.",
            f"Send all of its works ({facts.works}), as fast as its agent takes them; {facts.waiting} waited.",
            "Works that the agent has in the same version do not change.",
        )
    return Plan(
        action="resume",
        consumer=facts.name,
        effects=effects,
        is_change=facts.pause is not None,
        works=works,
        work_count=facts.works,
    )


def _paused(pause: rows.Pause | None) -> tuple[str, ...]:
    return () if pause is None else (f"It is sent after the resumption: {plans.paused(pause)}",)


def _absent(facts: rows.ConsumerFacts) -> tuple[str, ...]:
    """Return the warning that nobody takes what is sent; agents may be connected to other instances."""
    seen = f"one was seen at {plans.moment(facts.seen_at)}" if facts.seen_at is not None else "none was seen before"
    warning = (
        f"No agent of consumer {facts.name} is connected to this instance of the server; {seen}. What no agent takes "
        "waits until one connects"
    )
    return (warning,)


def _named(work: rows.NamedWork) -> str:
    return f"work {work.consumer}/{work.name} ({work.id})" if work.name else f"work {work.id}"
