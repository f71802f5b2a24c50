"""`maestro resourcebundle`: what is wanted on the clusters, and what became of it."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli import bundle_story, failure, inputs, rendering, running
from maestropy.cli.connection import GrpcFlags, RestFlags, open_client, wait_seconds
from maestropy.cli.inputs import Page, Search, Size
from maestropy.cli.rendering import Output

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
  maestro resourcebundle describe cluster1/hello
  maestro resourcebundle watch --consumer cluster1

Exit codes: 0 done (diff: no difference), 1 failed (diff: there are differences), 2 a mistake in the command line,
3 diff failed, 130 interrupted.""",
    help_format="plaintext",
    version_flags=[],
)

Shown = Annotated[Output, Parameter(name=("-o", "--output"), help="How to print.")]
Selected = Annotated[str, Parameter(name=("-l", "--selector"), help="Only with these labels: app=web,!canary.")]
File = Annotated[
    Path,
    Parameter(name=("-f", "--filename"), help="A YAML or JSON file; - is standard input.", allow_leading_hyphen=True),
]
Wait = Annotated[bool, Parameter(help="Wait until it is done, for as long as --timeout says.", negative=())]
Yes = Annotated[bool, Parameter(name=("-y", "--yes"), help="Do not ask.", negative=())]
ForConsumer = Annotated[str, Parameter(help="The consumer, if the file does not name it.")]
Wanted = Annotated[str, Parameter(help="The id, as `list` shows it, or the name of a work: NAME or CONSUMER/NAME.")]
Named = Annotated[str, Parameter(help="The name of the work that plain manifests become.")]


@app.command(name="list")
def list_(
    *,
    page: Page = 1,
    size: Size = 100,
    search: Search = "",
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
    sys.stdout.write(rendering.listing(found, output=output, columns=rendering.BUNDLES))
    return 0


@app.command
def get(wanted: Wanted, /, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show one resource bundle."""
    with open_client(rest) as client:
        found = bundle_story.get(client, wanted)
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
            bundle_story.say_applied(done.work.id, done.operation)
        for bundle in bundles:
            with bundle_story.told(str(bundle.get("id", ""))):
                ids.append(client.bundles.apply(bundle))
            bundle_story.say_applied(ids[-1], "")
        if wait:
            seconds = wait_seconds(rest)
            for bundle_id in ids:
                bundle_story.wait_applied(client, bundle_id, seconds=seconds)
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
    with failure.comparing(), ExitStack() as stack:
        works, bundles = inputs.sort(inputs.documents(file), consumer=consumer, name=name)
        client = stack.enter_context(open_client(rest, grpc))
        found = [bundle_story.diff_work(client, wanted) for wanted in works]
        found += [bundle_story.diff_bundle(client, bundle) for bundle in bundles]
    return 1 if any(found) else 0


@app.command
def delete(
    wanted: Wanted,
    /,
    *,
    yes: Yes = False,
    wait: Wait = False,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Ask for the deletion of a resource bundle."""
    with open_client(rest, grpc) as client:
        found = bundle_story.get(client, wanted)
        bundle_id = found["id"]
        name = (found.get("metadata") or {}).get("name") or bundle_id
        inputs.confirm(f"Delete resource bundle {name} on {found.get('consumer_name')}?", yes=yes)
        client.bundles.delete(bundle_id)
        if wait:
            bundle_story.wait_gone(client, bundle_id, seconds=wait_seconds(rest))
    sys.stdout.write(f"Resource bundle {bundle_id} deleted successfully\n")
    return 0


@app.command
def status(wanted: Wanted, /, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show what the agent says about a resource bundle."""
    with open_client(rest) as client:
        found = bundle_story.get(client, wanted)
    told = found.get("status") or {}
    if output in ("table", "wide"):
        sys.stdout.write(bundle_story.sentence(found) + rendering.table(bundle_story.condition_lines(found)))
    else:
        sys.stdout.write(rendering.single({"id": found["id"], **told}, output=output, fields=lambda _: ()))
    return 0


@app.command
def describe(wanted: Wanted, /, *, rest: RestFlags | None = None) -> int:
    """Tell all about a resource bundle, the most important thing first."""
    with open_client(rest) as client:
        found = bundle_story.get(client, wanted)
    feedback = [
        [f"{each.kind}/{each.name}", name, json.dumps(value, ensure_ascii=False)]
        for each in bundle_story.work(found).leaves()
        for name, value in each.feedback.items()
    ]
    parts = [bundle_story.sentence(found), rendering.single(found, output="table", fields=rendering.bundle_fields)]
    parts += ["\nConditions\n", rendering.table(bundle_story.condition_lines(found))]
    if feedback:
        parts += ["\nFeedback\n", rendering.table([["MANIFEST", "NAME", "VALUE"], *feedback])]
    sys.stdout.write("".join(parts))
    return 0


@app.command
def watch(
    *,
    consumer: Annotated[str, Parameter(help="Only on this cluster.")] = "",
    selector: Selected = "",
    output: Shown = "table",
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Follow the works of our source, through reconnects, until interrupted."""
    running.end_with_reader()
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
