"""Find the resource bundles that a command names: by keys, by files, or by labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from maestropy.cli.client import inputs, listing
from maestropy.cli.client.bundles import full_reads, steps
from maestropy.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFlags:
    """Resource bundles that are not named one by one."""

    file: Annotated[
        tuple[Path, ...],
        Parameter(
            name=("-f", "--file", "--filename"),
            help="A YAML or JSON file with the works; - is standard input; may be repeated.",
            allow_leading_hyphen=True,
            negative=(),
        ),
    ] = ()
    selector: Annotated[str, Parameter(name=("-l", "--selector"), help="Those with these labels.")] = ""
    consumer: Annotated[str, Parameter(help="With -l only those of this consumer; with -f the consumer.")] = ""
    source: Annotated[str, Parameter(help="With -l only those of this source ID.")] = ""
    name: Annotated[str, Parameter(help="With -f the name of the work for plain manifests.")] = ""
    ignore_not_found: Annotated[bool, Parameter(help="Skip those that do not exist.", negative=())] = False


def find(
    client: "Maestro", keys: Sequence[str], flags: TargetFlags, *, may_be_missing: bool = False
) -> list[dict[str, Any]]:
    """Return the resource bundles, each once; raises CommandError if one does not exist."""
    if sum(map(bool, (keys, flags.file, flags.selector))) != 1:
        raise UsageError("name resource bundles by ID or name, or give -f FILE, or -l LABELS; one of the three")
    if flags.selector:
        if flags.consumer:
            listing.known_consumer(client, flags.consumer)
        if full_reads.is_needed(flags.selector, narrowed=bool(flags.consumer or flags.source)):
            full_reads.notify(flags.selector)
        return list(client.resource_bundles.list(labels=flags.selector, consumer=flags.consumer, source=flags.source))
    wanted = _works_of_files(client, flags) if flags.file else {key: key for key in keys}
    is_optional = may_be_missing or flags.ignore_not_found
    bundles = [_get(client, key, shown=shown, is_optional=is_optional) for key, shown in wanted.items()]
    return list({str(bundle["id"]): bundle for bundle in bundles if bundle is not None}.values())


def _works_of_files(client: "Maestro", flags: TargetFlags) -> dict[str, str]:
    """Return the IDs of what the files hold, and how to show each."""
    documents = [document for file in flags.file for document in inputs.documents(file)]
    works, bundles = inputs.sort(documents, consumer=flags.consumer, name=flags.name)
    if any(not bundle.get("id") for bundle in bundles):
        raise UsageError("a resource bundle of the file has no id: it cannot be found")
    named = {client.works(work.consumer).id_of(work.name): f"{work.consumer}/{work.name}" for work in works}
    return {bundle_id: f"{bundle_id} ({name})" for bundle_id, name in named.items()} | {
        str(bundle["id"]): str(bundle["id"]) for bundle in bundles
    }


def _get(client: "Maestro", key: str, *, shown: str, is_optional: bool) -> dict[str, Any] | None:
    bundle = steps.get_if_exists(client, key)
    if bundle is None and not is_optional:
        raise CommandError(f"resource bundle not found: {shown}")
    return bundle
