"""`maestro consumer`: create, list, update, delete and adopt consumers; `actions` has the other operator actions."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.client import actions, inputs, listing
from maestropy.cli.client import output as rendering
from maestropy.cli.client.actions import NO_FLAGS, ActionFlags, Key, TranslatedErrors, Yes, operator
from maestropy.cli.client.connection import RestFlags, open_client
from maestropy.cli.client.formats import TABLE, Format, OutputFlag
from maestropy.cli.client.listing import ListFlags
from maestropy.cli.errors import CommandError, UsageError
from maestropy.cli.examples import epilogue
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.consumers import DataSafetyHold

app = App(
    name="consumer",
    help="Create, list, update, delete, pause, resync, retire and adopt consumers, the target clusters of works.",
    help_epilogue=epilogue(
        "maestro consumer create us-east-mgmt-01 --label region=us-east",
        "maestro consumer list -l region=us-east -o name",
        "maestro consumer update us-east-mgmt-01 --label tier=prod",
        "maestro consumer delete us-east-mgmt-01 --yes",
        "maestro consumer pause us-east-mgmt-01 --reason 'node upgrade' --dry-run",
        "maestro consumer adopt us-east-mgmt-01 --dry-run",
    ),
    help_format="plaintext",
    version_flags=[],
)

_UNKNOWN = "UnknownConsumer"
_NAMED_WORKS = 50
"""How many works of a hold are shown with their names; each costs a request."""
LabelArguments = Annotated[
    tuple[str, ...], Parameter(name="--label", help="A label key=value; may be repeated.", negative=())
]


@app.command(
    name="list",
    help_epilogue=epilogue(
        "maestro consumer list",
        "maestro consumer list -l region=us-east -o name",
        "maestro consumer list --search \"name like 'us-%'\" -o wide",
        "maestro consumer list --all -o custom-columns=NAME:.name,REGION:.labels.region",
        "maestro consumer list -o jsonpath='{.items[*].name}'",
        "maestro consumer list --watch --no-headers",
    ),
)
def list_(*, flags: ListFlags | None = None, output: OutputFlag = TABLE, rest: RestFlags | None = None) -> int:
    """List consumers."""
    with open_client(rest) as client:
        show_list(client, flags or ListFlags(), output=output)
    return 0


def show_list(client: "Maestro", flags: ListFlags, *, output: Format) -> None:
    """Print consumers, and with tables the data-safety holds of their agents."""
    listing.check(flags)
    collection = _collection(client, flags)
    if output.kind == "name":
        listing.show(collection, flags, output=output, columns=rendering.CONSUMERS)
        return
    if flags.watch:
        listing.follow(collection, flags, output=output, columns=rendering.CONSUMERS)
    result = collection.read(flags)
    # After the consumers: an error is then about what was asked for.
    holds = client.consumers.holds() if output.is_table else {}
    pauses = client.consumers.pauses() if output.is_table else {}
    missing = _missing_consumers(client, holds)
    columns = rendering.CONSUMERS
    if holds:
        columns = rendering.with_column(
            columns, "HOLD", {name: rendering.hold_cell(hold) for name, hold in holds.items()}
        )
    if pauses:
        since = {name: f"since {rendering.moment(pause.paused_at)}" for name, pause in pauses.items()}
        columns = rendering.with_column(columns, "PAUSED", since)
    screen.write(rendering.listing(result, output=output, columns=columns, headers=not flags.no_headers))
    screen.write_error(listing.rest_of(result, flags))
    if holds:
        screen.write_error(rendering.hold_lines(holds, missing=missing))
    screen.write_error(rendering.pause_lines(list(pauses.values())))


def _collection(client: "Maestro", flags: ListFlags) -> listing.Collection:
    return listing.Collection(
        kind="ConsumerList",
        page=lambda page, size: client.consumers.page(page=page, size=size, search=flags.search),
        every=lambda: map(_as_dict, client.consumers.list(labels=flags.selector or None, search=flags.search)),
    )


def _missing_consumers(client: "Maestro", holds: "Mapping[str, DataSafetyHold]") -> frozenset[str]:
    """Return the consumers that the server does not have, although their agents hold works."""
    from maestropy.sdk import errors

    def is_missing(name: str) -> bool:
        try:
            client.consumers.get(name)
        except errors.NotFound:
            return True
        return False

    # A consumer with another reason was there when its agent asked last.
    return frozenset(name for name, hold in holds.items() if hold.reason == _UNKNOWN and is_missing(name))


@app.command(help_epilogue=epilogue("maestro consumer get us-east-mgmt-01 -o yaml"))
def get(key: Key, /, *, output: OutputFlag = TABLE, rest: RestFlags | None = None) -> int:
    """Show one consumer."""
    with open_client(rest) as client:
        row = read(client, key)
    screen.write(rendering.single(row, output=output, fields=rendering.consumer_fields))
    return 0


def read(client: "Maestro", key: str) -> dict[str, object]:
    """Return a consumer with its data-safety hold; raises CommandError."""
    with TranslatedErrors():
        consumer = client.consumers.get(key)
        hold = client.consumers.hold(consumer.id)
        pause = client.consumers.pauses().get(consumer.name)
    row = _as_dict(consumer)
    if pause is not None:
        row["delivery_pause"] = {
            "paused_at": pause.paused_at,
            "paused_by": pause.paused_by,
            "reason": pause.reason,
        }
    if hold is not None:
        names = ("id", "reason", "message", "database_id", "since", "work_count")
        pending = {} if hold.pending is None else {"pending_evictions": asdict(hold.pending)}
        row["data_safety_hold"] = {name: getattr(hold, name) for name in names} | pending
    return row


@app.command(
    help_epilogue=epilogue(
        "maestro consumer adopt us-east-mgmt-01 --dry-run",
        "maestro consumer adopt us-east-mgmt-01 --yes",
    )
)
def adopt(
    key: Key,
    /,
    *,
    action: ActionFlags = NO_FLAGS,
    rest: RestFlags | None = None,
) -> int:
    """Let the database of the server decide about works that a data-safety hold keeps.

    An agent holds works when its server uses another or an older database, or lost the consumer or most works. Adopt
    only when the database is the right one. Works that it has are applied; works that it does not have are deleted
    after the agent's eviction grace period. The agent learns of the adoption within a minute.
    """
    from maestropy.sdk import errors

    with open_client(rest) as client, TranslatedErrors():
        try:
            consumer = client.consumers.get(key)
        except errors.NotFound:
            raise _absent(key, client.consumers.holds().get(key)) from None
        hold = client.consumers.hold(consumer.id)
        if hold is None:
            screen.write(f"Consumer {printable.escape(consumer.name)} has no data-safety hold; nothing to adopt\n")
            return 0
        screen.write(rendering.adoption(hold, names=_work_names(client, hold)))
        if action.dry_run:
            return 0
        inputs.confirm(f"Adopt the database for consumer {consumer.name}?", yes=action.yes)
        try:
            client.consumers.adopt(consumer.id, hold_id=hold.id, reason=action.reason, requested_by=operator())
        except errors.AlreadyExists as error:
            raise CommandError(f"{error.reason}") from error
    screen.write(f"Hold {printable.escape(hold.id)} adopted; the agent learns of it within a minute\n")
    return 0


@app.command(help_epilogue=epilogue("maestro consumer create us-east-mgmt-01 --label region=us-east"))
def create(
    name: Annotated[str, Parameter(help="The name of the consumer.")],
    /,
    *,
    label: LabelArguments = (),
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Create a consumer."""
    with open_client(rest) as client, TranslatedErrors():
        created = client.consumers.create(name, labels=parse_labels(label))
    screen.write(rendering.single(_as_dict(created), output=output, fields=rendering.consumer_fields))
    return 0


@app.command(
    help_epilogue=epilogue(
        "maestro consumer update us-east-mgmt-01 --label tier=prod",
        "maestro consumer update us-east-mgmt-01 --remove-label tier",
    )
)
def update(
    key: Key,
    /,
    *,
    label: LabelArguments = (),
    remove_label: Annotated[tuple[str, ...], Parameter(help="A label to remove; may be repeated.", negative=())] = (),
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Set and remove labels of a consumer; other labels stay."""
    changes: dict[str, str | None] = {**parse_labels(label), **dict.fromkeys(_split(remove_label))}
    with open_client(rest) as client, TranslatedErrors():
        changed = client.consumers.update(key, labels=changes)
    screen.write(rendering.single(_as_dict(changed), output=output, fields=rendering.consumer_fields))
    return 0


@app.command(
    help_epilogue=epilogue(
        "maestro consumer delete us-east-mgmt-01 --yes",
        "maestro consumer delete us-east-mgmt-01 us-east-mgmt-02 --yes",
        "maestro consumer delete -l region=us-east --yes",
    )
)
def delete(
    *keys: Key,
    selector: Annotated[str, Parameter(name=("-l", "--selector"), help="Those with these labels.")] = "",
    yes: Yes = False,
    rest: RestFlags | None = None,
) -> int:
    """Delete consumers that have no works, by ID, name or labels."""
    if bool(keys) == bool(selector):
        raise UsageError("name consumers by ID or name, or give -l LABELS; one of the two")
    with open_client(rest) as client, TranslatedErrors():
        # All are looked up first: if one does not exist, nothing is deleted.
        chosen = client.consumers.list(labels=selector) if selector else map(client.consumers.get, keys)
        consumers = {consumer.id: consumer for consumer in chosen}
        names = [f"{consumer.name} ({consumer.id})" for consumer in consumers.values()]
        if not names:
            screen.write_error("No consumers found\n")
            return 0
        inputs.confirm(f"Delete consumer{'s' if len(names) > 1 else ''} {', '.join(names)}?", yes=yes)
        for consumer, name in zip(consumers.values(), names, strict=True):
            _delete_one(client, consumer.id, name=consumer.name)
            shown = printable.escape(name) if len(names) > 1 else consumer.id
            screen.write(f"Consumer {shown} deleted successfully\n")
    return 0


def _delete_one(client: "Maestro", consumer_id: str, *, name: str) -> None:
    from maestropy.sdk import errors, selector

    try:
        client.consumers.delete(consumer_id)
    except errors.Conflict as error:
        works = client.resource_bundles.page(search=f"consumer_name = {selector.quoted(name)}")["items"]
        if any(work.get("deleted_at") for work in works):
            error.advice = (
                f"{error.advice}; those in deletion stay until the agent of this consumer has confirmed it. If it "
                f"never comes back: maestro consumer retire {name} --release --dry-run"
            )
        raise


def _work_names(client: "Maestro", hold: "DataSafetyHold") -> dict[str, str]:
    """Return the names of the first works of a hold that the database has, by their IDs."""
    from maestropy.sdk import errors

    absent, names = frozenset(hold.absent_works), {}
    for work_id in [work_id for work_id in hold.works if work_id not in absent][:_NAMED_WORKS]:
        try:
            bundle = client.resource_bundles.get(work_id)
        except errors.NotFound:
            continue
        names[work_id] = str((bundle.get("metadata") or {}).get("name") or "")
    return names


def _absent(name: str, hold: "DataSafetyHold | None") -> CommandError:
    """Return why nothing can be adopted for a consumer that does not exist, and what to do."""
    if hold is None:
        return CommandError(f"consumer not found: there is no consumer {printable.escape(name)!r}")
    return CommandError(
        f"consumer {printable.escape(name)} does not exist, and its agent keeps "
        f"{rendering.works_text(hold.work_count)}: {printable.escape(hold.message)}. First check that the server uses "
        "the right database; then create the consumer, and adopt what is still held. Creating it deletes nothing"
    )


def parse_labels(arguments: tuple[str, ...]) -> dict[str, str]:
    """Parse `key=value` arguments; one may hold several with commas between them, as in the Go command line."""
    labels = {}
    for argument in _split(arguments):
        key, equals, value = argument.partition("=")
        if not equals or not key:
            raise UsageError(f"--label {argument}: write it as key=value")
        labels[key] = value
    return labels


def _split(arguments: tuple[str, ...]) -> list[str]:
    return [part for argument in arguments for part in argument.split(",")]


def _as_dict(consumer: object) -> dict[str, object]:
    values = {name: getattr(consumer, name) for name in ("created_at", "id", "labels", "name", "updated_at")}
    values |= {"href": f"/api/maestro/v1/consumers/{values['id']}", "kind": "Consumer"}
    return {name: dict(values[name]) if name == "labels" else values[name] for name in sorted(values) if values[name]}


app.command(
    actions.pause,
    name="pause",
    help_epilogue=epilogue(
        "maestro consumer pause us-east-mgmt-01 --dry-run",
        "maestro consumer pause us-east-mgmt-01 --reason 'node upgrade' --yes",
    ),
)
app.command(actions.resume, name="resume", help_epilogue=epilogue("maestro consumer resume us-east-mgmt-01 --yes"))
app.command(actions.resync, name="resync", help_epilogue=epilogue("maestro consumer resync us-east-mgmt-01 --dry-run"))
app.command(
    actions.retire,
    name="retire",
    help_epilogue=epilogue(
        "maestro consumer retire us-east-mgmt-01 --release --dry-run",
        "maestro consumer retire us-east-mgmt-01 --delete --reason 'cluster is gone' --yes",
    ),
)
app.command(
    actions.sweep,
    name="sweep",
    help_epilogue=epilogue("maestro consumer sweep --dry-run", "maestro consumer sweep --class hold --yes"),
)
