"""Damaged documents never end a walk: any field may have any value."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maestropy.trace.hcp import identity, walk
from maestropy.trace.hcp.documents import document_types, offline, saved_documents
from maestropy.trace.hcp.query import Snapshot, Topic
from maestropy.trace.hcp.report import render
from tests.unit.trace.hcp.hcp_documents import ARM, CID, MAIN_BUNDLE, NAMESPACE, NOW, document, stuck

BASE = {**stuck(), "checks": document("09-cs-inflight-checks-failed.json")}
JUNK = [None, 5, "x", [], {}, [None, 5], {"a": {"b": 1}}, True, -1, "\x00\u202e", 1e300]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inside:
        yield from paths(each, (*path, key))


PATHS = [each for each in paths(BASE) if each]


def directory(told: dict[str, Any]) -> offline.DocumentDirectory:
    entries: dict[Topic, tuple[document_types.RecognisedDocument, ...]] = {}
    for where, value in told.items():
        for found in document_types.recognise(value):
            if found.topic:
                entries[found.topic] = (*entries.get(found.topic, ()), replace(found, where=where))
    return offline.DocumentDirectory(entries=entries, unused=(), unreadable=())


@pytest.mark.long
@settings(max_examples=30, deadline=None)
@given(
    changes=st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(JUNK)), min_size=1, max_size=3),
    entry=st.sampled_from([ARM, CID, MAIN_BUNDLE, f"{NAMESPACE}/f3k9q2"]),
)
async def test_walk_ends_with_a_verdict(changes: list[tuple[tuple[Any, ...], Any]], entry: str) -> None:
    told = copy.deepcopy(BASE)
    for path, junk in changes:
        system: Any = told
        try:
            for step in path[:-1]:
                system = system[step]
            system[path[-1]] = junk
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took it away
    snapshot = Snapshot(now=NOW, is_offline=True)
    found = await walk.run(identity.parse(entry), runner=directory(told), snapshot=snapshot)
    assert found.verdict.reason
    assert render.text(found, details=[hop.name for hop in found.hops])
    assert render.model(found)["hops"]
    assert list(saved_documents.files(found))
