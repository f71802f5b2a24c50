"""Operator actions of the command line: each shows what it does, asks, and does exactly that."""

import functools
import getpass
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from maestropy.cli import screen
from maestropy.cli.client import inputs
from maestropy.cli.client import output as rendering
from maestropy.cli.client.connection import RestFlags, open_client
from maestropy.cli.client.formats import TABLE, Format, OutputFlag
from maestropy.cli.errors import CommandError, UsageError
from maestropy.untrusted import printable

if TYPE_CHECKING:
    from maestropy.sdk.actions import OperatorAction

Key = Annotated[str, Parameter(help="The ID or the name.")]
Yes = Annotated[bool, Parameter(name=("-y", "--yes"), help="Do not ask for confirmation.", negative=())]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ActionFlags:
    """The flags of every operator action."""

    reason: Annotated[str, Parameter(help="Why; it is kept in the history and shown to others.")] = ""
    dry_run: Annotated[bool, Parameter(help="Only print what would happen.", negative=())] = False
    yes: Yes = False


NO_FLAGS = ActionFlags()


def pause(
    key: Key,
    /,
    *,
    action: ActionFlags = NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Stop sending works to a consumer until it is resumed.

    What sources request meanwhile is stored, acknowledged, and sent after the resumption. Nothing changes on the
    cluster. The pause survives restarts of the servers.
    """
    with open_client(rest) as client, TranslatedErrors():
        ask = functools.partial(client.consumers.pause, key)
        return carry_out(ask, f"Pause delivery to consumer {key}?", flags=action, output=output)


def resume(
    key: Key,
    /,
    *,
    action: ActionFlags = NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Send works to a paused consumer again: all of them, because its agent may have restarted meanwhile."""
    with open_client(rest) as client, TranslatedErrors():
        ask = functools.partial(client.consumers.resume, key)
        return carry_out(ask, f"Resume delivery to consumer {key}?", flags=action, output=output)


def resync(
    key: Key,
    /,
    *,
    action: ActionFlags = NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Send all works of a consumer again, and let its agent report what the server does not have."""
    with open_client(rest) as client, TranslatedErrors():
        ask = functools.partial(client.consumers.resync, key)
        return carry_out(ask, f"Resync consumer {key}?", flags=action, output=output)


def retire(
    key: Key,
    /,
    *,
    release: Annotated[
        bool, Parameter(help="Remove works and consumer from the database; objects stay.", negative=())
    ] = False,
    delete: Annotated[bool, Parameter(help="Mark the works for deletion; the consumer stays.", negative=())] = False,
    action: ActionFlags = NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Retire a consumer whose agent is gone for good.

    It is refused while an agent of the consumer is connected, or was seen within the last ten minutes. Say explicitly
    what becomes of the works: --release or --delete.
    """
    if release == delete:
        raise UsageError("say what becomes of the works: --release (objects stay on the cluster) or --delete")
    works: Literal["release", "delete"] = "release" if release else "delete"
    with open_client(rest) as client, TranslatedErrors():
        ask = functools.partial(client.consumers.retire, key, works=works)
        return carry_out(ask, f"Retire consumer {key} and {works} its works?", flags=action, output=output)


def sweep(
    *,
    classes: Annotated[
        tuple[Literal["hold", "pause", "agent", "event", "status-event"], ...],
        Parameter(name="--class", help="Only rows of this class; may be repeated.", negative=()),
    ] = (),
    action: ActionFlags = NO_FLAGS,
    output: OutputFlag = TABLE,
    rest: RestFlags | None = None,
) -> int:
    """Remove rows of the database that belong to no consumer or work.

    Works and objects on clusters are never touched. Works that agents keep are listed; an adoption ends that.
    """
    with open_client(rest) as client, TranslatedErrors():
        ask = functools.partial(client.consumers.sweep, classes=classes)
        return carry_out(ask, "Remove these rows?", flags=action, output=output)


def carry_out(ask: "Callable[..., OperatorAction]", question: str, *, flags: ActionFlags, output: Format) -> int:
    """Show what an action would do, ask, and do that; `ask` is the method of the client for it."""
    ask = functools.partial(ask, reason=flags.reason, requested_by=operator())
    plan = ask(dry_run=True)
    if flags.dry_run or not plan.is_change:
        # It was done before: what is shown is the result of the action, not its plan.
        shown = replace(plan, is_dry_run=flags.dry_run)
        ending = "Dry run: nothing was changed\n" if flags.dry_run else "Nothing was changed\n"
        _show(shown, output=output, ending=ending)
        return 0
    if output.is_table:
        screen.write(rendering.action(plan))
    inputs.confirm(question, yes=flags.yes)
    done = ask(plan=plan.plan) if plan.plan else ask()
    if output.is_table:
        screen.write("Done\n" if done.is_change else rendering.action(done))
    else:
        _show(done, output=output)
    return 0


def operator() -> str:
    """Return who runs the command, for the history; it proves nothing."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"  # as in a container that runs under a number without a name
    return f"{user}@{platform.node()}"


def _show(plan: "OperatorAction", *, output: Format, ending: str = "") -> None:
    if output.is_table:
        screen.write(rendering.action(plan) + ending)
    else:
        screen.write(rendering.single(asdict(plan), output=output, fields=lambda _: ()))


class TranslatedErrors:
    """Translates errors to the messages of the Go command line, which scripts match."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        from maestropy.sdk import errors

        if isinstance(error, errors.NotFound):
            raise CommandError(f"consumer not found: {printable.escape(error.reason)}") from error
        if isinstance(error, errors.AlreadyExists):
            raise CommandError("consumer already exists") from error
