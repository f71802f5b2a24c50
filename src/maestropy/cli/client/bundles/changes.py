"""Commands of `maestro resourcebundle` that change: apply, diff, delete; and wait, for what became of it."""

import functools
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from maestropy.cli import errors, screen
from maestropy.cli.client import actions, inputs
from maestropy.cli.client.bundles import applying, steps, wait_conditions
from maestropy.cli.client.bundles.reads import BundleKey
from maestropy.cli.client.bundles.targets import TargetFlags, find
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client, wait_seconds
from maestropy.cli.client.formats import TABLE, OutputFlag
from maestropy.cli.errors import UsageError
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro

Files = Annotated[
    tuple[Path, ...],
    Parameter(
        name=("-f", "--file", "--filename"),
        help="A YAML or JSON file, or a folder with such files; - is standard input; may be repeated.",
        allow_leading_hyphen=True,
        negative=(),
    ),
]
Wait = Annotated[bool, Parameter(help="Wait until it is done, at most --timeout.", negative=())]
Yes = actions.Yes
_CONFIRMATION_SECONDS = 2.0
"""An agent that is connected mostly confirms a deletion within so much."""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFlags:
    """What a file with plain manifests does not say."""

    consumer: Annotated[str, Parameter(help="The consumer, if the file does not name it.")] = ""
    name: Annotated[str, Parameter(help="The name of the work for plain manifests.")] = ""


def apply(  # noqa: PLR0913 - one for each flag
    *,
    file: Files,
    work: WorkFlags | None = None,
    wait: Wait = False,
    dry_run: Annotated[
        Literal["none", "client", "server"],
        Parameter(help="client: only check the files; server: also compare with the server. Nothing is stored."),
    ] = "none",
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Create or update ManifestWorks, resource bundles or plain manifests from files."""
    if wait and dry_run != "none":
        raise UsageError("--wait waits for nothing with --dry-run; give one of them")
    works, bundles = _read(file, work or WorkFlags())
    applying.check_all(works, bundles)
    with open_client(rest, grpc) as client:
        run = applying.Applying(client, dry_run=dry_run, output=output, count=len(works) + len(bundles))
        run.apply_all(works, bundles)
        run.finish()
        if wait:
            seconds = wait_seconds(rest)
            for applied in run.applied:
                steps.wait_applied(
                    client, applied.id, seconds=seconds, name=applied.name if len(run.applied) > 1 else ""
                )
    return 0


def diff(
    *, file: Files, work: WorkFlags | None = None, rest: RestFlags | None = None, grpc: GrpcFlags | None = None
) -> int:
    """Show what apply would change; exit with 1 if there are differences."""
    with errors.comparison(), ExitStack() as stack:
        works, bundles = _read(file, work or WorkFlags())
        client = stack.enter_context(open_client(rest, grpc))
        has_changes = [steps.diff_work(client, desired) for desired in works]
        has_changes += [steps.diff_bundle(client, bundle) for bundle in bundles]
    return 1 if any(has_changes) else 0


def _read(files: Sequence[Path], flags: WorkFlags) -> Any:
    documents = [document for file in files for document in inputs.documents(file)]
    return inputs.sort(documents, consumer=flags.consumer, name=flags.name)


def delete(
    *keys: BundleKey,
    targets: TargetFlags | None = None,
    yes: Yes = False,
    wait: Wait = False,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Delete resource bundles: by ID or name, those of files, or those with labels.

    All are looked up first: if one does not exist, nothing is deleted. Those of another source are deleted with its
    --grpc-source-id; without it, a maestropy server rejects them before anything is deleted. Agents have two seconds
    to confirm deletions; what they have not confirmed by then is reported as requested. --wait waits longer.
    """
    flags = targets or TargetFlags()
    with open_client(rest, grpc) as client:
        bundles = find(client, keys, flags)
        if not bundles:
            screen.write_error("No resource bundles found\n")
            return 0
        names = [steps.full_name(bundle) for bundle in bundles]
        inputs.confirm(_question(bundles, names), yes=yes)
        foreign = steps.of_other_sources(client, [str(bundle["id"]) for bundle in bundles])
        # A server that rejects a deletion for its source then does so before anything is deleted.
        for bundle in sorted(bundles, key=lambda bundle: bundle["id"] not in foreign):
            with steps.source_advice(flags.source, count=len(foreign), source_id=client.settings.source):
                client.resource_bundles.delete(bundle["id"])
        if not wait:
            new = [bundle["id"] for bundle in bundles if not bundle.get("deleted_at")]
            steps.wait_briefly_gone(client, new, seconds=_CONFIRMATION_SECONDS)
        for bundle, name in zip(bundles, names, strict=True):
            if wait:
                steps.wait_gone(client, bundle["id"], seconds=wait_seconds(rest))
            shown = f"{bundle['id']} ({name})" if len(bundles) > 1 else bundle["id"]
            screen.write(printable.escape(f"Resource bundle {shown} {_deletion(client, bundle, waited=wait)}") + "\n")
    return 0


def resend(
    key: BundleKey,
    /,
    *,
    action: actions.ActionFlags = actions.NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Send a resource bundle to its agent again, in its current version.

    For a spec that an agent has not received. An agent that has the version changes nothing.
    """
    with open_client(rest, grpc) as client:
        bundle = steps.get(client, key)
        ask = functools.partial(client.resource_bundles.resend, bundle["id"])
        return actions.carry_out(ask, f"Send {steps.full_name(bundle)} again?", flags=action, output=output)


def _deletion(client: "Maestro", bundle: dict[str, Any], *, waited: bool) -> str:
    """Say what became of a deletion: Go's words if the bundle is gone, and that its agent has to confirm it if not."""
    current = None if waited else steps.get_if_exists(client, bundle["id"])
    if current is None or current.get("created_at") != bundle.get("created_at"):
        return "deleted successfully"
    if not current.get("deleted_at"):
        raise errors.CommandError(
            f"resource bundle {bundle['id']} is not deleted: the gRPC server took the request, and the REST server "
            "shows no deletion; check that both addresses lead to the same Maestro"
        )
    if not bundle.get("deleted_at"):
        return "deletion requested; its agent has to confirm it (--wait waits for that)"
    return f"deletion requested at {bundle['deleted_at']}; its agent has not confirmed it yet"


def _question(bundles: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    if len(bundles) == 1:
        name = (bundles[0].get("metadata") or {}).get("name") or bundles[0]["id"]
        return f"Delete resource bundle {name} on {bundles[0].get('consumer_name')}?"
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"Delete {len(names)} resource bundles: {', '.join(names[:10])}{more}?"


def wait(
    *keys: BundleKey,
    targets: TargetFlags | None = None,
    goal: Annotated[
        str,
        Parameter(name="--for", help="condition=TYPE, condition=TYPE=STATUS, delete, or jsonpath='{PATH}'=VALUE."),
    ] = "condition=Applied",
    rest: RestFlags | None = None,
    grpc: GrpcFlags | None = None,
) -> int:
    """Wait until resource bundles have a condition, a value, or are gone; at most --timeout.

    A condition counts for the current version only: the status of an older version is not enough.
    """
    awaited = wait_conditions.parse(goal)
    with open_client(rest, grpc) as client:
        flags = targets or TargetFlags()
        bundles = find(client, keys, flags, may_be_missing=awaited.kind == "delete")
        if not bundles and not awaited.kind == "delete":
            raise errors.CommandError("no resource bundles found to wait for")
        steps.wait_for(client, bundles, awaited, seconds=wait_seconds(rest))
    return 0
