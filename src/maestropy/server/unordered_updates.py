"""Remember status updates whose order is not known, until the agent has sent its status again.

In memory and bounded: an instance that has forgotten one asks the agent once more.
"""

from collections import OrderedDict
from collections.abc import Callable

# A Go agent retries after at most 1,000 seconds.
KEPT_SECONDS = 1200.0
MAX_ITEMS = 10_000


class UnorderedUpdates:
    """The sequence ID of the last unordered update of each resource."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._sequence_ids: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def add(self, resource_id: str, sequence_id: str) -> None:
        """Remember an update; it replaces an earlier one of the same resource."""
        self._sequence_ids[resource_id] = (sequence_id, self._monotonic())
        self._sequence_ids.move_to_end(resource_id)
        if len(self._sequence_ids) > MAX_ITEMS:
            self._sequence_ids.popitem(last=False)

    def discard(self, resource_id: str) -> None:
        """Forget the update of a resource whose status is stored."""
        self._sequence_ids.pop(resource_id, None)

    def sequence_id(self, resource_id: str) -> str:
        """Return the sequence ID of the last unordered update of a resource; empty if there is none of late."""
        sequence_id, added = self._sequence_ids.get(resource_id, ("", 0.0))
        return sequence_id if sequence_id and self._monotonic() - added < KEPT_SECONDS else ""
