"""Order pending spec events so that a consumer with a long queue does not delay the others.

Pure: the spec dispatcher reads the events and says which consumers can be sent to.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from maestropy.store import rows


def fair_batches(
    pending_events: Iterable[rows.PendingEvent], *, at_most: int, is_ready: Callable[[str], bool] = lambda _: True
) -> Iterator[Mapping[str, Sequence[rows.PendingEvent]]]:
    """Yield batches of at most `at_most` resources with all their events, taking consumers in turn.

    A resource is in one batch only: it is sent once, however many events are pending for it. `is_ready` is asked before
    each resource; a consumer that is not ready is left out from then on.
    """
    due: dict[str, dict[str, list[rows.PendingEvent]]] = defaultdict(lambda: defaultdict(list))
    for event in pending_events:
        due[event.consumer or ""][event.resource_id].append(event)
    queue = deque((consumer, deque(resources.items())) for consumer, resources in due.items())
    batch: dict[str, Sequence[rows.PendingEvent]] = {}
    while queue:
        consumer, resources = queue.popleft()
        if is_ready(consumer):
            resource_id, events = resources.popleft()
            batch[resource_id] = events
            if resources:
                queue.append((consumer, resources))
        if batch and (len(batch) == at_most or not queue):
            yield batch
            batch = {}
