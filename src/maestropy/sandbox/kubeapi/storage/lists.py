"""Serve list requests: selectors, pages of one consistent state, and resourceVersions that are too old or too new."""

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.errors import StatusError
from maestropy.sandbox.kubeapi.rules import selectors
from maestropy.sandbox.kubeapi.rules.selectors import Predicate
from maestropy.sandbox.kubeapi.schemas.kinds import ServedKind
from maestropy.sandbox.kubeapi.storage.store import ObjectStore, StoredObject

Json = dict[str, Any]
_MAX_OPEN_LISTS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPage:
    """One page of a list."""

    items: list[StoredObject]
    metadata: Json
    version: int


def predicate(kind: ServedKind, query: Mapping[str, str]) -> Predicate | None:
    """Return a predicate for the selectors in a query; None if every object matches."""
    try:
        tests = [
            selectors.labels(query.get("labelSelector", "")),
            selectors.fields(query.get("fieldSelector", ""), kind),
        ]
    except selectors.BadSelector as error:
        raise errors.bad_request(str(error)) from error
    present = [test for test in tests if test]
    if not present:
        return None
    return lambda obj: all(test(obj) for test in present)


def number(query: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    """Return a number from a query."""
    text = query.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise errors.bad_request(f'{name}: Invalid value: "{text}": must be a number')
    return int(text)


class ListReader:
    """Reads lists. The remaining items of a paged list are kept, so that later pages show the state of the first."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._open: OrderedDict[str, list[StoredObject]] = OrderedDict()

    def expire_continue_tokens(self) -> None:
        """Expire every continue token."""
        self._open.clear()

    def page(self, kind: ServedKind, namespace: str, query: Mapping[str, str]) -> ObjectPage:
        """Return the first page of a list, or the page of a continue token."""
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
        return ObjectPage(items=items, metadata=metadata, version=version)

    def _check_version(self, query: Mapping[str, str]) -> None:
        requested = number(query, "resourceVersion") or 0
        current = self._store.version
        if requested > current:
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            text = f"Timeout: Too large resource version: {requested}, current: {current}"
            raise StatusError(504, "Timeout", text, details=details)
        if query.get("resourceVersionMatch") == "Exact" and 0 < requested < current:
            raise errors.expired(f"The resourceVersion for the provided list is too old: {requested}")

    def _keep(self, version: int, start: int, remaining: list[StoredObject]) -> str:
        content = {"v": "meta.k8s.io/v1", "rv": version, "start": start, "n": id(remaining)}
        token = base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")
        self._open[token] = remaining
        while len(self._open) > _MAX_OPEN_LISTS:
            self._open.popitem(last=False)
        return token

    def _continued(self, token: str) -> list[StoredObject]:
        if token not in self._open:
            raise errors.expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        return self._open[token]


def _read_token(token: str) -> tuple[int, int]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(content["rv"]), int(content["start"])
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise errors.bad_request("continue key is not valid: start a new list without it") from error
