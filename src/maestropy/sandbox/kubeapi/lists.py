"""What does a LIST return? Selection, pages over one consistent state, and versions that are too old or too new."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import problems, selectors
from maestropy.sandbox.kubeapi.kinds import Kind
from maestropy.sandbox.kubeapi.problems import Problem
from maestropy.sandbox.kubeapi.selectors import Predicate
from maestropy.sandbox.kubeapi.store import Store, Stored

Json = dict[str, Any]
_MAX_OPEN_LISTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list."""

    items: list[Stored]
    metadata: Json
    version: int


def predicate(kind: Kind, query: Mapping[str, str]) -> Predicate | None:
    """Return the test of the selectors in a query, or nothing where every object matches."""
    try:
        tests = [
            selectors.labels(query.get("labelSelector", "")),
            selectors.fields(query.get("fieldSelector", ""), kind),
        ]
    except selectors.BadSelector as error:
        raise problems.bad_request(str(error)) from error
    given = [test for test in tests if test]
    if not given:
        return None
    return lambda obj: all(test(obj) for test in given)


def number(query: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    """Return a number of a query."""
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise problems.bad_request(f'{name}: Invalid value: "{text}": must be a number')
    return int(text)


class Lists:
    """Lists, and the rest of those whose first pages are out: a later page shows the same state as the first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: OrderedDict[str, list[Stored]] = OrderedDict()

    def forget(self) -> None:
        """Make every continue token too old."""
        self._open.clear()

    def page(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> Page:
        """Return the list, or its next page."""
        self._check_version(query)
        limit = number(query, "limit") or 0
        if token := query.get("continue"):
            version, start = _read_token(token)
            items = self._continued(token)
        else:
            version, start = self._store.version, 0
            items = self._store.select(kind.resource, namespace)
            test = predicate(kind, query)
            if test:
                items = [stored for stored in items if test(stored.obj)]
        metadata: Json = {"resourceVersion": str(version)}
        if limit and len(items) > limit:
            metadata["continue"] = self._keep(version, start + limit, items[limit:])
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        return Page(items=items, metadata=metadata, version=version)

    def _check_version(self, query: Mapping[str, str]) -> None:
        wanted = number(query, "resourceVersion") or 0
        current = self._store.version
        if wanted > current:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            text = f"Timeout: Too large resource version: {wanted}, current: {current}"
            raise Problem(504, "Timeout", text, details=details)
        if query.get("resourceVersionMatch") == "Exact" and 0 < wanted < current:
            raise problems.gone(f"The resourceVersion for the provided list is too old: {wanted}")

    def _keep(self, version: int, start: int, rest: list[Stored]) -> str:
        content = {"v": "meta.k8s.io/v1", "rv": version, "start": start, "n": id(rest)}
        token = base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")
        self._open[token] = rest
        while len(self._open) > _MAX_OPEN_LISTS:
            self._open.popitem(last=False)
        return token

    def _continued(self, token: str) -> list[Stored]:
        if token not in self._open:
            raise problems.gone(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        return self._open[token]


def _read_token(token: str) -> tuple[int, int]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(content["rv"]), int(content["start"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise problems.bad_request("continue key is not valid: start a new list without it") from error
