"""`maestro consumer`: the clusters that works can be sent to."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli import inputs, rendering
from maestropy.cli.connection import RestFlags, open_client
from maestropy.cli.failure import CommandError, UsageError
from maestropy.cli.inputs import Page, Search, Size
from maestropy.cli.rendering import Output

app = App(
    name="consumer",
    help="Register, show, relabel and remove the clusters that works can be sent to.",
    help_epilogue="""\
Examples:

  maestro consumer create us-east-mgmt-01 --label region=us-east
  maestro consumer list -l region=us-east -o name
  maestro consumer update us-east-mgmt-01 --label tier=prod
  maestro consumer delete us-east-mgmt-01 --yes

Exit codes: 0 done, 1 failed, 2 a mistake in the command line, 130 interrupted.""",
    help_format="plaintext",
    version_flags=[],
)

Shown = Annotated[Output, Parameter(name=("-o", "--output"), help="How to print.")]
Labelled = Annotated[
    tuple[str, ...], Parameter(name="--label", help="A label key=value; may be repeated.", negative=())
]
Key = Annotated[str, Parameter(help="The id or the name.")]
Yes = Annotated[bool, Parameter(name=("-y", "--yes"), help="Do not ask.", negative=())]


@app.command(name="list")
def list_(
    *,
    page: Page = 1,
    size: Size = 100,
    search: Search = "",
    selector: Annotated[str, Parameter(name=("-l", "--selector"), help="Only with these labels.")] = "",
    output: Shown = "table",
    rest: RestFlags | None = None,
) -> int:
    """Show the consumers."""
    with open_client(rest) as client:
        if selector:
            chosen = client.consumers.list(labels=selector, search=search)
            items = [_as_dict(each) for each in chosen]
            found = {"items": items, "kind": "ConsumerList", "page": 1, "size": len(items), "total": len(items)}
        else:
            found = client.consumers.page(page=page, size=size, search=search)
    sys.stdout.write(rendering.listing(found, output=output, columns=rendering.CONSUMERS))
    return 0


@app.command
def get(key: Key, *, output: Shown = "table", rest: RestFlags | None = None) -> int:
    """Show one consumer."""
    with open_client(rest) as client, _told():
        found = client.consumers.get(key)
    sys.stdout.write(rendering.single(_as_dict(found), output=output, fields=rendering.consumer_fields))
    return 0


@app.command
def create(
    name: Annotated[str, Parameter(help="What it is to be called.")],
    *,
    label: Labelled = (),
    output: Shown = "table",
    rest: RestFlags | None = None,
) -> int:
    """Register a cluster."""
    with open_client(rest) as client, _told():
        made = client.consumers.create(name, labels=parse_labels(label))
    sys.stdout.write(rendering.single(_as_dict(made), output=output, fields=rendering.consumer_fields))
    return 0


@app.command
def update(
    key: Key,
    *,
    label: Labelled = (),
    remove_label: Annotated[tuple[str, ...], Parameter(help="A label to remove; may be repeated.", negative=())] = (),
    output: Shown = "table",
    rest: RestFlags | None = None,
) -> int:
    """Set and remove labels of a consumer; the others stay."""
    changes: dict[str, str | None] = {**parse_labels(label), **dict.fromkeys(remove_label)}
    with open_client(rest) as client, _told():
        changed = client.consumers.update(key, labels=changes)
    sys.stdout.write(rendering.single(_as_dict(changed), output=output, fields=rendering.consumer_fields))
    return 0


@app.command
def delete(key: Key, *, yes: Yes = False, rest: RestFlags | None = None) -> int:
    """Remove a consumer that has no works."""
    with open_client(rest) as client, _told():
        found = client.consumers.get(key)
        inputs.confirm(f"Delete consumer {found.name} ({found.id})?", yes=yes)
        client.consumers.delete(found.id)
    sys.stdout.write(f"Consumer {found.id} deleted successfully\n")
    return 0


def parse_labels(given: tuple[str, ...]) -> dict[str, str]:
    """Read `key=value` words."""
    found = {}
    for word in given:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise UsageError(f"--label {word}: write it as key=value")
        found[key] = value
    return found


class _told:  # noqa: N801 - reads as a word of the `with` statement
    """Says what went wrong in the words that scripts look for."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        from maestropy.sdk import errors

        if isinstance(error, errors.NotFound):
            raise CommandError(f"consumer not found: {error.reason}") from error
        if isinstance(error, errors.AlreadyExists):
            raise CommandError("consumer already exists") from error


def _as_dict(found: object) -> dict[str, object]:
    values = {name: getattr(found, name) for name in ("created_at", "id", "labels", "name", "updated_at")}
    return {name: dict(value) if name == "labels" else value for name, value in values.items() if value}
