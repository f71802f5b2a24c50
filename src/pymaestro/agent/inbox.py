"""Stage: events of the server become wishes, and answers to its questions.

What cannot be read is answered too: the server learns why a spec was not applied instead of waiting for ever.
"""

from collections.abc import Callable

from pymaestro.agent import describe
from pymaestro.agent.works import Held, Works
from pymaestro.journal.emit import Journal
from pymaestro.journal.fields import Agent as Phrase
from pymaestro.journal.fields import Broker, Key
from pymaestro.wire import codec, errors, event, resync, work


class Inbox:
    """Takes events as they come."""

    def __init__(
        self,
        works: Works,
        *,
        consumer: str,
        journal: Journal,
        wake: Callable[[Held], None],
        say_again: Callable[[Held], None],
        withdraw: Callable[[str], None],
    ) -> None:
        self._works = works
        self._consumer = consumer
        self._journal = journal
        self._wake = wake
        self._say_again = say_again
        self._withdraw = withdraw

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
            self._withdraw(held.id)
        self._wake(held)

    def _answer(self, received: event.Event) -> None:
        """Say again what the server lacks, by comparing hashes."""
        known = resync.decode_hashes(received.data)
        current = [(held.id, held.status.hash()) for held in self._works]
        for work_id in resync.status_answer(current, known):
            held = self._works.get(work_id)
            if held is not None and held.status.body:
                self._say_again(held)

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
