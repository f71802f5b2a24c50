"""The filter of the works page."""

from datetime import timedelta

import pytest

from maestropy.console import rows
from maestropy.console.pages import filters
from maestropy.console.pages.filters import InvalidFilter
from maestropy.trace.work.model import ConsumerPause
from tests.console.fake_api import NOW, bundle, condition, stamp, status

_DELETED = stamp(NOW - timedelta(hours=2))
ROWS = [
    rows.row(item, now=NOW)
    for item in (
        bundle(1),
        bundle(2, version=2),
        bundle(3, status=status(1, [condition("Applied", ok=False, message="quota exceeded")])),
        bundle(4, deleted_at=_DELETED),
        bundle(5, status=None, created_at=stamp(NOW - timedelta(minutes=1))),
        bundle(6, metadata={"name": 'it\'s "odd"', "labels": {"team": "a b"}}),
    )
]
ROWS.append(rows.row(bundle(7, version=2), now=NOW, pause=ConsumerPause(consumer="cluster7", by="ann", since="")))
_CONTEXT = filters.Context(
    now=NOW.timestamp(), of_sources={"s1": {"id-0000002"}}, away=frozenset({"cluster2", "cluster3"})
)


def chosen(text: str) -> list[int]:
    found = filters.choose(ROWS, filters.parse(text), _CONTEXT)
    return [int(row.id[3:]) for row in found]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7]),
        ("WORK-2", [2]),
        ("cm-3", [3]),
        ("quota exceeded", [3]),
        ("-work", [6]),
        ("label:team=team1", [1]),
        ('label:"team=a b"', [6]),
        ("label:team -label:team=team1", [2, 3, 4, 5, 6, 7]),
        ("consumer:cluster4", [4]),
        ("source:s1", [2]),
        ("source:unknown", []),
        ("condition:Applied=False", [3]),
        ("condition:Applied", [1, 2, 3, 4, 6, 7]),
        ("-condition:Applied", [5]),
        ("age:<10m", [5]),
        ("age:>1h work", [1, 2, 3, 4, 7]),
        ("code:mw-005", [3]),
        ("severity:error", [2, 3, 7]),
        ("is:behind", [2, 5, 7]),
        ("is:deleting", [4]),
        ("is:stuck", [2, 3, 4, 7]),
        ("is:STUCK -is:deleting", [2, 3, 7]),
        ("is:paused", [7]),
        ("is:away", [2, 3]),
        ("severity:ERROR", [2, 3, 7]),
        ("severity:warning", [4, 5]),
        ("Severity:warn", [4, 5]),
        ("code:MW005", [3]),
        ("code:mw_004", [2]),
        ("condition:applied=false", [3]),
        ("condition:APPLIED", [1, 2, 3, 4, 6, 7]),
        (f"cause:{ROWS[2].cause}", [3]),
        ("is:unreported", [5]),
        ("is:healthy", [1, 6]),
        ("it's", [6]),
        ("id:id-0000003", [3]),
        ("name:work-1", [1]),
        ("nothing-has-this", []),
    ],
)
def test_filter_chooses(text: str, numbers: list[int]) -> None:
    assert chosen(text) == numbers


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("age:soon", "write age:>30m"),
        ("is:odd", "use one of healthy"),
        ("severity:bogus", "severity:bogus is not known; use one of error, warn, info"),
        ("code:XX", "code:XX is no verdict on a work; use a code such as MW-005"),
        ("code:MW-999", "use a code such as MW-005"),
        ("condition:Applied=maybe", "condition:Applied=maybe is not known; use one of True, False, Unknown"),
        ("label:", "write label:VALUE"),
        ("colour:red", "colour: is not known; use one of text, id, name"),
        ('label:"team=a', "a quote has no end"),
        ("x" * 1001, "1000 at most"),
    ],
)
def test_bad_filter_says_what_to_write(text: str, says: str) -> None:
    with pytest.raises(InvalidFilter, match=says):
        filters.parse(text)


def test_rows_are_sorted_worst_first() -> None:
    assert [row.severity for row in filters.ordered(ROWS, "severity")][:3] == ["error", "error", "error"]
    names = [row.name for row in filters.ordered(ROWS, "-name")]
    assert names == sorted(names, reverse=True)
    with pytest.raises(InvalidFilter, match="use one of severity"):
        filters.ordered(ROWS, "taste")
