"""Stage: events of the server become wishes, and answers to its questions.

What cannot be read is answered too: the server learns why a spec was not applied instead of waiting for ever.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

from maestropy.agent import describe
from maestropy.agent.works import Held, Works
from maestropy.journal.emit import Journal
from maestropy.journal.fields import Agent as Phrase
from maestropy.journal.fields import Broker, Key
from maestropy.wire import codec, errors, event, resync, work


class Ways(NamedTuple):
    """What events lead to."""

    wake: Callable[[Held], None]
    """A work is wanted otherwise, or no longer."""
    say_again: Callable[[Held, Callable[[], None]], None]
    """The server asks for a status; call back when it has it."""
    withdraw: Callable[[str], None]
    """Nobody wants to hear any more what was to be said about a work."""
    resynced: Callable[[str, float], None]
    """A status resync of this source was answered, in so many seconds."""


class Inbox:
    """Takes events as they come."""

    def __init__(
        self,
        works: Works,
        *,
        consumer: str,
        journal: Journal,
        ways: Ways,
        monotonic: Callable[[], float],
    ) -> None:
        self._works = works
        self._consumer = consumer
        self._journal = journal
        self._ways = ways
        self._monotonic = monotonic

    def take(self, received: event.Event) -> None:
        """Take one event; nothing it contains can stop the agent."""
        try:
            self._tell(received)
            kind = event.parse_type(received.type)
            if kind.data_type != event.MANIFEST_BUNDLES:
                self._journal.warning(Broker.UNSUPPORTED_DATA_TYPE, {Key.EVENT_TYPE: received.type[:256]})
            elif received.text(event.CLUSTER_NAME) != self._consumer:
                self._journal.info(Broker.OTHER_CLUSTER, {Key.EVENT_TYPE: received.type}, v=4)
            elif kind.subresource == event.Subresource.SPEC and kind.action != event.Action.RESYNC_REQUEST:
                self._take_spec(received)
            elif kind.action == event.Action.RESYNC_REQUEST and kind.subresource == event.Subresource.STATUS:
                self._answer(received)
            else:
                self._journal.info(Broker.UNSUPPORTED_EVENT_TYPE, {Key.EVENT_TYPE: received.type[:256]})
        except Exception as error:  # noqa: BLE001 - strangers write events; the next one may be fine
            self._journal.error(Phrase.DECODE_FAILED, {Key.EVENT_TYPE: received.type[:256]}, err=error)

    def _take_spec(self, received: event.Event) -> None:
        try:
            incoming, problem = codec.work_from_spec_event(received), ""
        except errors.WireError as error:
            self._journal.error(
                Phrase.DECODE_FAILED, {Key.RESOURCE_ID: received.optional_text(event.RESOURCE_ID)}, err=error
            )
            incoming, problem = _without_spec(received), str(error)
        before = self._works.get(incoming.uid)
        held = self._works.put(incoming, problem=problem)
        if held is None:
            return
        if before is not None and before is not held:
            # What was still to be said about its former life would end the new one.
            self._ways.withdraw(held.id)
        self._ways.wake(held)

    def _answer(self, received: event.Event) -> None:
        """Say again what the server lacks, by comparing hashes."""
        known = resync.decode_hashes(received.data)
        current = [(held.id, held.status.hash()) for held in self._works]
        lacking = [self._works.get(work_id) for work_id in resync.status_answer(current, known)]
        answers = [held for held in lacking if held is not None and held.status.body]
        started, unsaid = self._monotonic(), {held.id for held in answers}

        def said(work_id: str) -> None:
            unsaid.discard(work_id)
            if not unsaid:
                self._ways.resynced(received.source, self._monotonic() - started)

        for held in answers:
            self._ways.say_again(held, functools.partial(said, held.id))

    def _tell(self, received: event.Event) -> None:
        if self._journal.enabled(2):
            self._journal.info(Phrase.RECEIVED, describe.event_fields(received), v=2)


def _without_spec(received: event.Event) -> work.ManifestWork:
    """Return as much of a work as is needed to answer for it; raises when not even that can be read."""
    found = work.ManifestWork({"metadata": {"name": received.text(event.RESOURCE_ID)}})
    return found.with_metadata(
        uid=received.text(event.RESOURCE_ID),
        generation=received.integer(event.RESOURCE_VERSION),
        namespace=received.text(event.CLUSTER_NAME),
    ).with_labels({work.ORIGINAL_SOURCE_LABEL: received.source})
