"""Shared steps of the resource bundle commands: read one, compare it, wait for it, describe it."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from maestropy.cli import screen
from maestropy.cli.client import row_watch
from maestropy.cli.client.bundles import wait_conditions
from maestropy.cli.errors import CommandError
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.work import Work

_POLL_SECONDS = 0.2
_IDS_IN_SEARCH = 100
"""They fit into an address that every proxy accepts."""
_PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]+")
"""An ID that can be searched for."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class BundleNotFound(CommandError):
    """There is no such resource bundle."""


def get(client: "Maestro", key: str) -> dict[str, Any]:
    """Return the resource bundle of an ID or of a work's name; raises CommandError."""
    with translated_errors(key):
        return client.resource_bundles.get(key) if _UUID.fullmatch(key) else _named(client, key)


def get_if_exists(client: "Maestro", key: str) -> dict[str, Any] | None:
    """Return the resource bundle of an ID or of a work's name, or None."""
    try:
        return get(client, key)
    except BundleNotFound:
        return None


def _named(client: "Maestro", key: str) -> dict[str, Any]:
    """Return the resource bundle of a work called NAME or CONSUMER/NAME; an ambiguous name is rejected."""
    from maestropy.sdk import selector

    consumer, _, name = key.rpartition("/")
    terms = [f"payload->'metadata'->>'name' = {selector.quoted(name)}"]
    terms += [f"consumer_name = {selector.quoted(consumer)}"] if consumer else []
    items = client.resource_bundles.page(search=" and ".join(terms))["items"]
    if not items:
        raise BundleNotFound(f"resource bundle not found: {key}")
    if len(items) > 1:
        raise CommandError(f"{len(items)} resource bundles are called {key}; {_choices(client, items, name)}")
    bundle: dict[str, Any] = items[0]
    found = (str((bundle.get("metadata") or {}).get("name") or ""), str(bundle.get("consumer_name") or ""))
    if found[0] != name or consumer not in ("", found[1]):
        raise CommandError(
            f"the server was asked for {key} and sent {full_name(bundle)}; check that the address leads to Maestro's "
            "REST API"
        )
    return bundle


def _choices(client: "Maestro", items: list[dict[str, Any]], name: str) -> str:
    """Return how to name one of several resource bundles, and all of them."""
    consumers = [str(item.get("consumer_name")) for item in items]
    source = client.settings.source
    lines = []
    for item, consumer in zip(items, consumers, strict=True):
        # The REST API does not show sources; the ID of a work follows from its source.
        is_ours = item["id"] == client.works(consumer).id_of(name)
        lines.append(f"\n  {item['id']} {consumer}/{name} {f'of source {source}' if is_ours else 'of another source'}")
    is_enough = len(set(consumers)) == len(items)
    return f"name one by {'CONSUMER/NAME or by ' if is_enough else ''}its ID:{''.join(lines)}"


@contextmanager
def translated_errors(bundle_id: str) -> Iterator[None]:
    """Translate errors to the messages of the Go command line, which scripts match."""
    from maestropy.sdk import errors

    try:
        yield
    except errors.ConsumerNotFound:
        raise
    except errors.NotFound as error:
        raise BundleNotFound(f"resource bundle not found: {bundle_id}") from error


@contextmanager
def deletion_advice(key: str) -> Iterator[None]:
    """Say what to type when a write fails because the work is under deletion; the client's advice is for Python."""
    from maestropy.sdk import errors

    try:
        yield
    except errors.Conflict as error:
        if "deletion" in error.reason or "deleted" in error.reason:
            error.advice = f"wait until it is gone: maestro resourcebundle wait {key} --for=delete"
        raise


def of_other_sources(client: "Maestro", ids: Sequence[str]) -> frozenset[str]:
    """Return which resource bundles belong to another source than this command; REST tells it in searches only."""
    from maestropy.sdk import selector

    own = selector.quoted(client.settings.source)
    known = [bundle_id for bundle_id in ids if _PLAIN_ID.fullmatch(bundle_id)]
    found = set(ids).difference(known)
    for start in range(0, len(known), _IDS_IN_SEARCH):
        listed = ", ".join(map(selector.quoted, known[start : start + _IDS_IN_SEARCH]))
        page = client.resource_bundles.page(search=f"id in ({listed}) and source <> {own}", size=_IDS_IN_SEARCH)
        found |= {str(item["id"]) for item in page["items"]}
    return frozenset(found)


@contextmanager
def source_advice(source: str, *, count: int, source_id: str) -> Iterator[None]:
    """Say which flag changes works of another source, when the server rejects that; a Go server does not."""
    from maestropy.sdk import errors

    try:
        yield
    except errors.Forbidden as error:
        if "another source" in error.reason:
            works = "1 resource bundle belongs" if count == 1 else f"{count} resource bundles belong"
            narrow = "" if source else ", and with -l --source to take only those of one"
            error.advice = (
                f"nothing was deleted; {works} to another source than {source_id}: give --grpc-source-id "
                f"{source or 'SOURCE'}{narrow}"
            )
        raise


def full_name(bundle: dict[str, Any]) -> str:
    """Return CONSUMER/NAME of a resource bundle; one without a name has only its consumer."""
    name = str((bundle.get("metadata") or {}).get("name") or bundle.get("name") or "")
    return f"{bundle.get('consumer_name') or ''}/{name}".strip("/")


def stored(client: "Maestro", desired: "Work") -> "Work | None":
    """Return the stored work of the same name, or None."""
    from maestropy.sdk import errors

    try:
        return client.works(desired.consumer).get(desired.name)
    except errors.NotFound:
        return None


def diff_work(client: "Maestro", desired: "Work") -> bool:
    """Print what applying a work would change; return whether it would change anything."""
    from maestropy.sdk._operations import changes as changing

    before = stored(client, desired)
    if before is None:
        client.consumers.get(desired.consumer)
    changes = ["  + it would be created"] if before is None else lines(changing.differences(before, desired))
    screen.write("".join(f"{line}\n" for line in [f"{desired.consumer}/{desired.name}", *changes] if changes))
    return bool(changes)


def diff_bundle(client: "Maestro", bundle: dict[str, Any]) -> bool:
    """Print what applying a resource bundle would change; return whether it would change anything."""
    from maestropy.sdk._operations import changes as changing

    if not bundle.get("id"):
        screen.write("a new resource bundle\n  + it would be created\n")
        return True
    before = get(client, str(bundle["id"]))
    changes = lines(changing.differences(work(before), work({**before, **bundle})))
    screen.write("".join(f"{line}\n" for line in [str(bundle["id"]), *changes] if changes))
    return bool(changes)


def lines(differences: list[tuple[str, Any, Any]]) -> list[str]:
    """Return differences as lines with - and +."""
    shown = []
    for path, old, new in differences:
        shown += [f"  - {path}: {json.dumps(old)}"] if old is not None else []
        shown += [f"  + {path}: {json.dumps(new)}"] if new is not None else []
    return [printable.escape(line) for line in shown]


def work(bundle: dict[str, Any]) -> "Work":
    """Return a resource bundle as a work."""
    from maestropy.sdk.work import Work

    return Work.from_resource_bundle(bundle)


def sentence(bundle: dict[str, Any]) -> str:
    """Return the state of a resource bundle as a sentence."""
    from maestropy.sdk._operations import summary

    state = summary.sentence(work(bundle))
    return f"{printable.escape(f'{state[:1].upper()}{state[1:]}')}.\n\n"


def condition_lines(bundle: dict[str, Any]) -> list[list[str]]:
    """Return the rows of a table with all conditions."""
    parsed = work(bundle)
    rows = [("(work)", condition) for condition in parsed.conditions]
    rows += [(f"{item.kind}/{item.name}", condition) for item in parsed.manifests for condition in item.conditions]
    heads = ["OF", "CONDITION", "STATUS", "REASON", "MESSAGE"]
    return [
        heads,
        *([owner, condition.type, condition.status, condition.reason, condition.message] for owner, condition in rows),
    ]


def wait_applied(client: "Maestro", bundle_id: str, *, seconds: float, name: str = "") -> None:
    """Wait until the agent has applied a resource bundle; `name` is shown beside its ID."""
    goal = wait_conditions.WaitGoal(kind="condition", name="Applied", value="True")
    last, is_unreported = "no status was read", False

    def is_applied() -> bool:
        nonlocal last, is_unreported
        current = get(client, bundle_id)
        last, is_unreported = goal.missing(current), _is_unreported(work(current))
        return goal.is_met(current)

    shown = f"{bundle_id} ({name})" if name else bundle_id
    poll = _Poll(is_applied)
    if not poll.reaches_within(seconds):
        next_step = f"; find out where it stopped with `maestro trace work --resource-id {bundle_id}`"
        why = f"{poll.why(last)}{next_step if is_unreported else ''}"
        raise CommandError(f"resource bundle {shown} is not applied after {seconds:g} seconds: {why}")
    screen.write(printable.escape(f"Resource bundle {shown} is applied") + "\n")


def _is_unreported(current: "Work") -> bool:
    """Whether the agent has not reported on the current version: it may not run at all."""
    return current.is_stale or not current.is_reported


def wait_for(
    client: "Maestro", bundles: list[dict[str, Any]], goal: wait_conditions.WaitGoal, *, seconds: float
) -> None:
    """Wait until all resource bundles have reached the goal; one that is gone can only reach a deletion."""
    import time

    end = time.monotonic() + seconds
    for bundle in bundles:
        shown = f"{bundle['id']} ({full_name(bundle)})"
        left = max(0.0, end - time.monotonic())
        last = _wait_for_one(client, str(bundle["id"]), goal, seconds=left)
        if last:
            awaited = "gone" if goal.kind == "delete" else f"{goal.name}={goal.value}"
            raise CommandError(f"resource bundle {shown} is not {awaited} after {seconds:g} seconds: {last}")
        screen.write(
            printable.escape(f"Resource bundle {shown} {'deleted' if goal.kind == 'delete' else 'condition met'}")
            + "\n"
        )


def _wait_for_one(client: "Maestro", bundle_id: str, goal: wait_conditions.WaitGoal, *, seconds: float) -> str:
    """Return why the goal was not reached in time; empty if it was."""
    last = "no status was read"

    def is_met() -> bool:
        nonlocal last
        try:
            current = get(client, bundle_id)
        except BundleNotFound:
            if goal.kind == "delete":
                return True
            raise
        last = goal.missing(current)
        return goal.is_met(current)

    poll = _Poll(is_met)
    return "" if poll.reaches_within(seconds) else poll.why(last)


def wait_gone(client: "Maestro", bundle_id: str, *, seconds: float) -> None:
    """Wait until a resource bundle is gone."""
    last = _wait_for_one(client, bundle_id, wait_conditions.WaitGoal(kind="delete"), seconds=seconds)
    if last:
        raise CommandError(f"resource bundle {bundle_id} still exists after {seconds:g} seconds; {last}")


def wait_briefly_gone(client: "Maestro", bundle_ids: Sequence[str], *, seconds: float) -> None:
    """Give agents a moment to confirm deletions, altogether for so many seconds; return also if they do not."""
    import time

    end = time.monotonic() + seconds
    for bundle_id in bundle_ids:
        left = end - time.monotonic()
        if left <= 0 or _wait_for_one(client, bundle_id, wait_conditions.WaitGoal(kind="delete"), seconds=left):
            return


class _Poll:
    """Polls a state; a server that is gone is reported once, and so is its return."""

    def __init__(self, state: Callable[[], bool]) -> None:
        self._state = state
        self._outage = ""

    def reaches_within(self, seconds: float) -> bool:
        """Poll until the state is reached or the time is over; return whether it was reached."""
        import time

        end = time.monotonic() + seconds
        while not self._is_reached_now():
            if time.monotonic() > end:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def why(self, last: str) -> str:
        """Return why the state was not reached: the server is gone, or what was last read of it."""
        return f"the server is gone: {self._outage}; before that: {last}" if self._outage else last

    def _is_reached_now(self) -> bool:
        from maestropy.sdk import errors

        try:
            is_reached = self._state()
        except errors.MaestroError as error:
            # The server may be restarting.
            if not error.is_retryable:
                raise
            if not self._outage:
                row_watch.report_gone(error.reason)
            self._outage = error.reason
            return False
        if self._outage:
            self._outage = ""
            screen.write_error("The server is back\n")
        return is_reached
