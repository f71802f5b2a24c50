"""Which works are held, and what operators see of it, while the answers of a server arrive."""

import itertools
from dataclasses import replace

from maestropy.agent.decide.data_safety import Hold, HoldReason, SpecOrigin
from maestropy.agent.state.data_safety import DataSafety
from maestropy.wire import resync, timestamps
from maestropy.wire.events import event

HERE = SpecOrigin(database="here", version=1)


class Agent:
    """The data safety of an agent with some works, all of which it applied from the database `here`."""

    def __init__(self, *works: str) -> None:
        ids = itertools.count(1)
        self.has_work = dict.fromkeys(works, True)
        self.safety = DataSafety(
            list_works=lambda: self.has_work,
            limit_percent=20,
            monotonic=lambda: 0.0,
            new_id=lambda: f"hold-{next(ids)}",
        )

    def lose(self, *works: str) -> None:
        """Receive the deletions of works that the server does not have."""
        for name in works:
            self.has_work[name] = False
            self.safety.note_orphan()

    def end_resync(self, database: str = "here", *, extension: str = "", value: event.Attribute = True) -> None:
        """Receive the end of an answer."""
        self.safety.note_request("request")
        marker: dict[str, event.Attribute] = {event.RESOURCE_ID: "request", event.DATABASE_ID: database}
        if extension:
            marker[extension] = value
        received = event.CloudEvent(id="e", source="s", type=event.SPEC_RESYNC_RESPONSE, extensions=marker)
        assert self.safety.receive(received)
        self.safety.adopted_by(received)
        self.safety.judge({name: HERE for name, is_there in self.has_work.items() if not is_there})

    def reported(self) -> tuple[str, int] | None:
        hold = self.safety.report(str)
        return None if hold is None else (hold.reason, hold.count)


def names(count: int) -> list[str]:
    return [f"w{number}" for number in range(count)]


def test_consumer_that_is_created_on_a_database_without_its_works_stays_held() -> None:
    for database, reason in (("here", HoldReason.TOO_MANY_ORPHANS), ("there", HoldReason.OTHER_DATABASE)):
        agent = Agent(*names(10))
        agent.end_resync(database, extension=event.UNKNOWN_CONSUMER)
        assert agent.reported() == (HoldReason.UNKNOWN_CONSUMER, 10)
        hold_id = agent.safety.hold_id
        agent.lose(*names(10))
        # Until the answer is complete, nothing has changed.
        assert agent.reported() == (HoldReason.UNKNOWN_CONSUMER, 10)
        agent.end_resync(database)
        assert agent.reported() == (reason, 10)
        assert agent.safety.hold_id == hold_id
        assert f"{reason} 10" in agent.safety.summary()


def test_nothing_is_stated_before_the_first_answer_is_complete() -> None:
    agent = Agent()
    agent.lose(*names(30))
    assert not agent.safety.is_judged
    assert agent.safety.summary() == ""
    assert agent.reported() is None
    for name in names(30):
        agent.has_work[name] = True
    agent.end_resync()
    assert agent.safety.is_judged
    assert agent.safety.summary() == ""


def test_new_agent_of_an_unknown_consumer_asks_again_and_shows_no_hold() -> None:
    agent = Agent()
    agent.end_resync(extension=event.UNKNOWN_CONSUMER)
    assert agent.safety.summary() == ""
    assert not agent.safety.counts()
    assert agent.safety.must_ask
    agent.end_resync()
    assert not agent.safety.must_ask


def test_few_orphans_are_visible_until_they_are_evicted_or_back() -> None:
    agent = Agent(*names(10))
    agent.lose("w0", "w1")
    agent.end_resync()
    assert agent.reported() == (HoldReason.EVICTION_PENDING, 2)
    assert agent.safety.summary().startswith("EvictionPending 2: the server does not have these works")
    agent.has_work["w0"] = True
    agent.end_resync()
    assert agent.reported() == (HoldReason.EVICTION_PENDING, 1)
    del agent.has_work["w1"]
    agent.safety.release("w1")
    assert agent.reported() is None


def test_adoption_counts_only_for_the_works_that_were_shown() -> None:
    agent = Agent(*names(10))
    agent.lose("w0")
    agent.end_resync()
    shown = agent.safety.report(str)
    assert shown is not None
    agent.safety.hold("w9", Hold(reason=HoldReason.OLDER_VERSION, message="older"), applied=HERE)
    held = agent.safety.report(str)
    assert held is not None
    assert (held.id != shown.id, held.works) == (True, ("w9",))
    assert held.message == "older; also EvictionPending 1"
    agent.end_resync(extension=event.ADOPTED_HOLD, value=shown.id)
    assert agent.safety.is_adopted("w0")
    assert not agent.safety.is_adopted("w9")


def test_pending_evictions_are_reported_beside_a_hold_with_their_countdown() -> None:
    agent = Agent(*names(10))
    agent.lose("w0", "w1")
    agent.end_resync()
    agent.safety.hold("w9", Hold(reason=HoldReason.OLDER_VERSION, message="older"), applied=HERE)
    for name, start in (("w0", 3600), ("w1", 60)):
        since = timestamps.Timestamp(start)
        agent.safety.note_countdown(name, since=since, deadline=timestamps.Timestamp(start + 3600))
    hold = agent.safety.report(str)
    assert hold is not None
    assert (hold.reason, hold.count, hold.works) == (HoldReason.OLDER_VERSION, 1, ("w9",))
    assert hold.pending == resync.PendingEvictions(
        count=2, works=("w0", "w1"), since="1970-01-01T00:01:00Z", deadline="1970-01-01T01:01:00Z"
    )
    assert "EvictionPending 2 (the first from 1970-01-01T01:01:00Z on)" in agent.safety.summary()
    agent.safety.release("w9")
    hold = agent.safety.report(str)
    assert hold is not None
    assert (hold.reason, hold.works, hold.pending is not None) == (HoldReason.EVICTION_PENDING, ("w0", "w1"), True)


def test_adopted_works_are_listed_until_they_are_evicted() -> None:
    agent = Agent(*names(10))
    agent.lose(*names(10))
    agent.end_resync()
    assert agent.reported() == (HoldReason.TOO_MANY_ORPHANS, 10)
    agent.end_resync(extension=event.ADOPTED_HOLD, value=agent.safety.hold_id)
    # The evictor records the adoption.
    for name in names(10):
        agent.safety.await_eviction(name, applied=replace(HERE, is_adopted=True))
    assert agent.reported() == (HoldReason.EVICTION_PENDING, 10)
    assert agent.safety.counts() == {HoldReason.EVICTION_PENDING: 10}
    assert agent.safety.summary().startswith("EvictionPending 10")
    assert not agent.safety.is_adopted("w0")


def test_hold_that_the_server_shows_and_the_agent_does_not_have_is_reported_as_over() -> None:
    agent = Agent("w")
    agent.end_resync()
    agent.safety.changed.clear()
    agent.end_resync(extension=event.STORED_HOLD)
    assert agent.safety.changed.is_set()
    assert agent.safety.is_held_at_server
