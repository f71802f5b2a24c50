"""What a user gives: files with `-f` (ManifestWorks, bundles, plain manifests), a part of a list, a yes or no."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from maestropy.cli.failure import CommandError, UsageError

if TYPE_CHECKING:
    from maestropy.sdk.work import Work

STDIN = Path("-")

Page = Annotated[int, Parameter(help="Which page of the list.")]
Size = Annotated[int, Parameter(help="How many on a page; with --selector all are shown.")]
Search = Annotated[str, Parameter(help="In the language of the REST API: \"name like 'web%'\".", show_default=False)]


def documents(path: Path) -> list[dict[str, Any]]:
    """Return the YAML or JSON documents of a file; `-` is standard input."""
    from maestropy.sdk import manifests

    return manifests.read(sys.stdin.read() if path == STDIN else path)


def sort(found: list[dict[str, Any]], *, consumer: str, name: str) -> "tuple[list[Work], list[dict[str, Any]]]":
    """Return the works and the bundles among the documents; plain manifests become one work called `name`."""
    from maestropy.sdk.work import Work

    works, bundles, plain = [], [], []
    for document in found:
        if document.get("kind") == "ManifestWork":
            works.append(_for(Work.from_dict(document), consumer=consumer))
        elif document.get("kind") in (None, "ResourceBundle") and "manifests" in document:
            bundles.append({**document, "consumer_name": consumer} if consumer else document)
        else:
            plain.append(document)
    if plain:
        if not (name and consumer):
            kinds = ", ".join(str(each.get("kind") or "no kind") for each in plain[:3])
            raise UsageError(f"the file holds plain manifests ({kinds}): give --consumer and --name for their work")
        works.append(Work(name, consumer=consumer).add(plain))
    return works, bundles


def _for(work: "Work", *, consumer: str) -> "Work":
    if consumer:
        work = work.wrap(work.manifest_work.with_metadata(namespace=consumer))
    if not work.consumer:
        raise UsageError(f"work {work.name!r} has no metadata.namespace: set it to the consumer, or give --consumer")
    return work


def confirm(question: str, *, yes: bool) -> None:
    """Return if the user agrees."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} Nobody is there to ask: add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done")
