"""The steps and words that the commands on resource bundles share: fetch one, wait for it, tell about it."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from maestropy.cli.failure import CommandError

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.work import Work

_LOOK_SECONDS = 0.2
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def get(client: "Maestro", wanted: str) -> dict[str, Any]:
    """Return the bundle of an id or of a work's name, or say in the words scripts look for that there is none."""
    with told(wanted):
        return client.bundles.get(wanted) if _UUID.fullmatch(wanted) else _named(client, wanted)


def _named(client: "Maestro", wanted: str) -> dict[str, Any]:
    """Return the bundle of a work called NAME or CONSUMER/NAME; two with one name are told apart, never guessed."""
    from maestropy.sdk import selector

    consumer, _, name = wanted.rpartition("/")
    terms = [f"payload->'metadata'->>'name' = {selector.quoted(name)}"]
    terms += [f"consumer_name = {selector.quoted(consumer)}"] if consumer else []
    items = client.bundles.page(search=" and ".join(terms))["items"]
    if not items:
        raise CommandError(f"resource bundle not found: {wanted}")
    if len(items) > 1:
        known = "".join(f"\n  {each['id']} {each.get('consumer_name')}/{name}" for each in items)
        raise CommandError(f"{len(items)} resource bundles are called {wanted}; name one by its id:{known}")
    found: dict[str, Any] = items[0]
    return found


@contextmanager
def told(bundle_id: str) -> Iterator[None]:
    """Say what went wrong in the words that scripts look for."""
    from maestropy.sdk import errors

    try:
        yield
    except errors.ConsumerNotFound:
        raise
    except errors.NotFound as error:
        raise CommandError(f"resource bundle not found: {bundle_id}") from error


def say_applied(bundle_id: str, operation: str) -> None:
    """Tell that something was stored."""
    said = f" ({operation})" if operation else ""
    sys.stdout.write(f"Resource bundle applied successfully{said}:\nID: {bundle_id}\n")


def stored(client: "Maestro", wanted: "Work") -> "Work | None":
    """Return what is stored under the name of a work."""
    from maestropy.sdk import errors

    try:
        return client.works(wanted.consumer).get(wanted.name)
    except errors.NotFound:
        return None


def diff_work(client: "Maestro", wanted: "Work") -> bool:
    """Tell what a work would change; say whether it would change anything."""
    from maestropy.sdk import changing

    before = stored(client, wanted)
    if before is None:
        client.consumers.get(wanted.consumer)
    changes = ["  + it would be created"] if before is None else lines(changing.differences(before, wanted))
    sys.stdout.write("".join(f"{line}\n" for line in [f"{wanted.consumer}/{wanted.name}", *changes] if changes))
    return bool(changes)


def diff_bundle(client: "Maestro", bundle: dict[str, Any]) -> bool:
    """Tell what a bundle would change; say whether it would change anything."""
    from maestropy.sdk import changing

    if not bundle.get("id"):
        sys.stdout.write("a new bundle\n  + it would be created\n")
        return True
    before = get(client, str(bundle["id"]))
    changes = lines(changing.differences(work(before), work({**before, **bundle})))
    sys.stdout.write("".join(f"{line}\n" for line in [str(bundle["id"]), *changes] if changes))
    return bool(changes)


def lines(found: list[tuple[str, Any, Any]]) -> list[str]:
    """Return differences as lines with - and +."""
    told = []
    for path, old, new in found:
        told += [f"  - {path}: {json.dumps(old)}"] if old is not None else []
        told += [f"  + {path}: {json.dumps(new)}"] if new is not None else []
    return told


def work(bundle: dict[str, Any]) -> "Work":
    """Return a bundle as a work."""
    from maestropy.sdk.work import Work

    return Work.from_bundle(bundle)


def sentence(bundle: dict[str, Any]) -> str:
    """Return where a bundle stands, as a sentence of its own."""
    from maestropy.sdk import telling

    told = telling.sentence(work(bundle))
    return f"{told[:1].upper()}{told[1:]}.\n\n"


def condition_lines(bundle: dict[str, Any]) -> list[list[str]]:
    """Return the lines of a table with all conditions."""
    found = work(bundle)
    told = [("(work)", each) for each in found.conditions]
    told += [(f"{item.kind}/{item.name}", each) for item in found.manifests for each in item.conditions]
    heads = ["OF", "CONDITION", "STATUS", "REASON", "MESSAGE"]
    return [heads, *([who, each.type, each.status, each.reason, each.message] for who, each in told)]


def wait_applied(client: "Maestro", bundle_id: str, *, seconds: float) -> None:
    """Wait until the agent has applied a bundle."""
    from maestropy.sdk import telling

    last = "nothing was heard of it"

    def is_applied() -> bool:
        nonlocal last
        found = work(get(client, bundle_id))
        last = telling.missing(found, "Applied")
        return found.is_true("Applied")

    if not _comes(is_applied, seconds=seconds):
        raise CommandError(f"resource bundle {bundle_id} is not applied after {seconds:g} seconds: {last}")
    sys.stdout.write(f"Resource bundle {bundle_id} is applied\n")


def wait_gone(client: "Maestro", bundle_id: str, *, seconds: float) -> None:
    """Wait until a bundle is gone."""
    from maestropy.sdk import errors

    def is_gone() -> bool:
        try:
            client.bundles.get(bundle_id)
        except errors.NotFound:
            return True
        return False

    if not _comes(is_gone, seconds=seconds):
        raise CommandError(
            f"resource bundle {bundle_id} is still there after {seconds:g} seconds; see that its agent runs"
        )


def _comes(state: Callable[[], bool], *, seconds: float) -> bool:
    """Look for a state until it is there or the time is up; say which."""
    import time

    from maestropy.sdk import errors

    def is_there() -> bool:
        try:
            return state()
        except errors.MaestroError as error:
            # A server that is started again meanwhile is worth waiting for.
            if not error.is_retryable:
                raise
            return False

    end = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
