"""`maestro resourcebundle`: what is wanted on the clusters, and what became of it."""

import json
import sys
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pymaestro.cli import inputs, rendering
from pymaestro.cli.connection import GrpcFlags, RestFlags, open_client, wait_seconds
from pymaestro.cli.failure import CommandError
from pymaestro.cli.rendering import Output

if TYPE_CHECKING:
    from pymaestro.sdk.blocking import Maestro
    from pymaestro.sdk.work import Work

app = App(
    name="resourcebundle",
    help="Show, apply, follow and delete what is wanted on the clusters.",
    help_epilogue="""\
Examples:

  maestro resourcebundle apply -f work.yaml --wait
  maestro resourcebundle apply -f configmap.yaml --consumer cluster1 --name hello
  cat work.yaml | maestro resourcebundle diff -f -
  maestro resourcebundle list -l app=web -o wide
  maestro resourcebundle describe 55c61e54-a3f6-563d-9fec-b1fe297bdfdb
  maestro resourcebundle watch --consumer cluster1

Exit codes: 0 done (diff: no difference), 1 failed (diff: there are differences), 2 a mistake in the command line,
130 interrupted.""",
    help_format="plaintext",
    version_flags=[],
)

Shown = Annotated[Output, Parameter(name=("-o", "--output"), help="How to print.")]
Selected = Annotated[str, Parameter(name=("-l", "--selector"), help="Only with these labels: app=web,!canary.")]
File = Annotated[Path, Parameter(name=("-f", "--filename"), help="A YAML or JSON file; - is standard input.")]
Wait = Annotated[bool, Parameter(help="Wait until it is done, for as long as --timeout says.", negative=())]
Yes = Annotated[bool, Parameter(name=("-y", "--yes"), help="Do not ask.", negative=())]
ForConsumer = Annotated[str, Parameter(help="The consumer, if the file does not name it.")]
Named = Annotated[str, Parameter(help="The name of the work that plain manifests become.")]

_HEAD = "ID NAME CONSUMER VERSION CREATED STATUS LABELS_"


@app.command(name="list")
def list_(
    *,
    page: int = 1,
    size: int = 100,
    search: str = "",
    selector: Selected = "",
    output: Shown = "table",
    rest: RestFlags | None = None,
) -> int:
    """Show the resource bundles of all sources."""
    with open_client(rest) as client:
        if selector:
            items = list(client.bundles.list(labels=selector, search=search))
            found = {"items": items, "kind": "ResourceBundleList", "page": 1, "size": len(items), "total": len(items)}
        else:
            found = client.bundles.page(page=page, size=size, search=search)
    shown = rendering.listing(found, output=output, cells=rendering.bundle_cells, head=_HEAD)
    sys.stdout.write(shown.replace("LABELS_", "LABELS", 1) if output == "wide" else shown)
    return 0


@app.command
def get(bundle_id: str, /, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show one resource bundle."""
    with open_client(rest) as client:
        found = _get(client, bundle_id)
    sys.stdout.write(rendering.single(found, output=output, fields=rendering.bundle_fields))
    return 0


@app.command
def apply(
    *,
    file: File,
    consumer: ForConsumer = "",
    name: Named = "",
    wait: Wait = False,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Create or update what a file describes: ManifestWorks, resource bundles, or plain manifests."""
    documents = inputs.documents(file)
    works, bundles = inputs.sort(documents, consumer=consumer, name=name)
    with open_client(rest, grpc) as client:
        ids = []
        for work in works:
            done = client.works(work.consumer).apply(work)
            ids.append(done.work.id)
            _say_applied(done.work.id, done.operation)
        for bundle in bundles:
            with _told(str(bundle.get("id", ""))):
                ids.append(client.bundles.apply(bundle))
            _say_applied(ids[-1], "")
        if wait:
            seconds = wait_seconds(rest)
            for bundle_id in ids:
                _wait_applied(client, bundle_id, seconds=seconds)
    return 0


@app.command
def diff(
    *,
    file: File,
    consumer: ForConsumer = "",
    name: Named = "",
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Show what apply would change; exit 1 if it would change anything."""
    from pymaestro.sdk import changing

    works, bundles = inputs.sort(inputs.documents(file), consumer=consumer, name=name)
    is_different = False
    with open_client(rest, grpc) as client:
        for wanted in works:
            stored = _stored(client, wanted)
            lines = ["  + it would be created"] if stored is None else _lines(changing.differences(stored, wanted))
            is_different |= bool(lines)
            sys.stdout.write("".join(f"{line}\n" for line in [f"{wanted.consumer}/{wanted.name}", *lines] if lines))
        for bundle in bundles:
            is_different |= _diff_bundle(client, bundle)
    return 1 if is_different else 0


@app.command
def delete(
    bundle_id: str,
    /,
    *,
    yes: Yes = False,
    wait: Wait = False,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Ask for the deletion of a resource bundle."""
    with open_client(rest, grpc) as client:
        found = _get(client, bundle_id)
        name = (found.get("metadata") or {}).get("name") or bundle_id
        inputs.confirm(f"Delete resource bundle {name} on {found.get('consumer_name')}?", yes=yes)
        client.bundles.delete(bundle_id)
        if wait:
            _wait_gone(client, bundle_id, seconds=wait_seconds(rest))
    sys.stdout.write(f"Resource bundle {bundle_id} deleted successfully\n")
    return 0


@app.command
def status(bundle_id: str, /, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show what the agent says about a resource bundle."""
    with open_client(rest) as client:
        found = _get(client, bundle_id)
    told = found.get("status") or {}
    if output in ("table", "wide"):
        sys.stdout.write(_sentence(found) + rendering.table(_condition_lines(found)))
    else:
        sys.stdout.write(rendering.single({"id": bundle_id, **told}, output=output, fields=lambda _: ()))
    return 0


@app.command
def describe(bundle_id: str, /, *, rest: RestFlags | None = None) -> int:
    """Tell all about a resource bundle, the most important thing first."""
    with open_client(rest) as client:
        found = _get(client, bundle_id)
    feedback = [
        [f"{each.kind}/{each.name}", name, json.dumps(value, ensure_ascii=False)]
        for each in _work(found).leaves()
        for name, value in each.feedback.items()
    ]
    parts = [_sentence(found), rendering.single(found, output="table", fields=rendering.bundle_fields)]
    parts += ["\nConditions\n", rendering.table(_condition_lines(found))]
    if feedback:
        parts += ["\nFeedback\n", rendering.table([["MANIFEST", "NAME", "VALUE"], *feedback])]
    sys.stdout.write("".join(parts))
    return 0


@app.command
def watch(
    *,
    consumer: str = "",
    selector: Selected = "",
    output: Shown = "table",
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Follow the works of our source, through reconnects, until interrupted."""
    with open_client(rest, grpc) as client, client.works(consumer or None).watch(labels=selector or None) as events:
        for told in events:
            found = told.work
            if output == "json":
                line = json.dumps({"type": told.type, "object": found.to_dict()}, ensure_ascii=False)
            elif output == "yaml":
                line = "---\n" + rendering.as_yaml({"type": str(told.type), "object": found.to_dict()}).rstrip()
            elif output == "name":
                line = found.id
            else:
                conditions = ",".join(f"{each.type}={each.status}" for each in found.conditions) or "-"
                line = f"{told.type:<9} {found.id} {found.consumer}/{found.name} version {found.version} {conditions}"
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    return 0


def _get(client: "Maestro", bundle_id: str) -> dict[str, Any]:
    with _told(bundle_id):
        return client.bundles.get(bundle_id)


@contextmanager
def _told(bundle_id: str) -> Iterator[None]:
    from pymaestro.sdk import errors

    try:
        yield
    except errors.ConsumerNotFound:
        raise
    except errors.NotFound as error:
        raise CommandError(f"resource bundle not found: {bundle_id}") from error


def _say_applied(bundle_id: str, operation: str) -> None:
    said = f" ({operation})" if operation else ""
    sys.stdout.write(f"Resource bundle applied successfully{said}:\nID: {bundle_id}\n")


def _stored(client: "Maestro", wanted: "Work") -> "Work | None":
    from pymaestro.sdk import errors

    try:
        return client.works(wanted.consumer).get(wanted.name)
    except errors.NotFound:
        return None


def _diff_bundle(client: "Maestro", bundle: dict[str, Any]) -> bool:
    from pymaestro.sdk import changing

    if not bundle.get("id"):
        sys.stdout.write("a new bundle\n  + it would be created\n")
        return True
    stored = _get(client, str(bundle["id"]))
    lines = _lines(changing.differences(_work(stored), _work({**stored, **bundle})))
    sys.stdout.write("".join(f"{line}\n" for line in [str(bundle["id"]), *lines] if lines))
    return bool(lines)


def _lines(found: list[tuple[str, Any, Any]]) -> list[str]:
    lines = []
    for path, old, new in found:
        lines += [f"  - {path}: {json.dumps(old)}"] if old is not None else []
        lines += [f"  + {path}: {json.dumps(new)}"] if new is not None else []
    return lines


def _work(bundle: dict[str, Any]) -> "Work":
    from pymaestro.sdk.work import Work

    return Work.from_bundle(bundle)


def _sentence(bundle: dict[str, Any]) -> str:
    from pymaestro.sdk import telling

    told = telling.sentence(_work(bundle))
    return f"{told[:1].upper()}{told[1:]}.\n\n"


def _condition_lines(bundle: dict[str, Any]) -> list[list[str]]:
    work = _work(bundle)
    lines = [["OF", "CONDITION", "STATUS", "REASON", "MESSAGE"]]
    lines += [["(work)", each.type, each.status, each.reason, each.message] for each in work.conditions]
    for manifest in work.manifests:
        who = f"{manifest.kind}/{manifest.name}"
        lines += [[who, each.type, each.status, each.reason, each.message] for each in manifest.conditions]
    return lines


def _wait_applied(client: "Maestro", bundle_id: str, *, seconds: float) -> None:
    from pymaestro.sdk import telling

    last = ""

    def is_applied() -> bool:
        nonlocal last
        work = _work(_get(client, bundle_id))
        last = telling.missing(work, "Applied")
        return work.is_true("Applied")

    if not _comes(is_applied, seconds=seconds):
        raise CommandError(f"resource bundle {bundle_id} is not applied after {seconds:g} seconds: {last}")
    sys.stdout.write(f"Resource bundle {bundle_id} is applied\n")


def _wait_gone(client: "Maestro", bundle_id: str, *, seconds: float) -> None:
    from pymaestro.sdk import errors

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


def _comes(state: Any, *, seconds: float) -> bool:
    """Look for a state until it is there or the time is up; say which."""
    import time

    end = time.monotonic() + seconds
    while not state():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
