"""In which order pending events are sent: each consumer gets its turn, however long the queue of another is."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from maestropy.store import rows


def rounds(found: Iterable[rows.Pending], *, at_most: int) -> Iterator[Mapping[str, Sequence[rows.Pending]]]:
    """Yield groups of at most `at_most` bundles with all their events; of each consumer one bundle after the other.

    A bundle is in one group only, since it is sent once however many events wait for it.
    """
    due: dict[str, dict[str, list[rows.Pending]]] = defaultdict(lambda: defaultdict(list))
    for pending in found:
        due[pending.consumer or ""][pending.resource_id].append(pending)
    queue = deque(deque(bundles.items()) for bundles in due.values())
    group: dict[str, Sequence[rows.Pending]] = {}
    while queue:
        bundles = queue.popleft()
        resource_id, events = bundles.popleft()
        group[resource_id] = events
        if bundles:
            queue.append(bundles)
        if len(group) == at_most or not queue:
            yield group
            group = {}
