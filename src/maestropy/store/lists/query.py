"""The condition, order and page of a list, and how they become a statement.

Pure. `condition` and `order` are compiled SQL, never user input.
"""

import re
from dataclasses import dataclass, replace

from maestropy.store.lists.keyset import Position
from maestropy.store.search import OrderKey, Reach

DEFAULT_ORDER = "resources.created_at, resources.id"

_PLACEHOLDER = re.compile(r"(?<!:):(condition|order|limit|offset)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Condition, order and page of a list."""

    condition: str = "TRUE"
    params: tuple[object, ...] = ()
    order: str = DEFAULT_ORDER
    offset: int = 0
    limit: int = 100
    keys: tuple[OrderKey, ...] = ()
    """The fields of `order`; without them a list has no continuation."""
    after: Position | None = None
    """The item after which the page begins, in place of `offset`."""
    reach: Reach = Reach.RANGE
    is_ordered_by_index: bool = False
    reads_documents: bool = False
    """Whether the condition needs the JSON of each row."""
    unserved: tuple[str, ...] = ()
    """Expressions that no index serves."""

    @property
    def reads_matches_first(self) -> bool:
        """Whether to find the matches by an index and to sort them, rather than to read rows in order until they match.

        PostgreSQL cannot tell how many resources have a label: it may expect to find a page of them soon in the order
        of creation, and then read the whole table.
        """
        return self.reach is Reach.MATCHES and not (self.is_ordered_by_index and self.order == DEFAULT_ORDER)


def narrow(query: ListQuery, condition: str, *params: object) -> ListQuery:
    """Add a condition to a query; each `{}` in it stands for a parameter."""
    first = len(query.params) + 1
    added = condition.format(*(f"${number}" for number, _ in enumerate(params, start=first)))
    return replace(query, condition=f"({query.condition}) AND {added}", params=(*query.params, *params))


def compose(statement: str, query: ListQuery) -> str:
    """Fill the placeholders of a statement in one pass, so that a value is never searched for placeholders."""
    parts = {
        "condition": query.condition,
        "order": query.order,
        "limit": str(int(query.limit)),
        "offset": str(int(query.offset)),
    }
    return _PLACEHOLDER.sub(lambda match: parts[match[1]], statement)
