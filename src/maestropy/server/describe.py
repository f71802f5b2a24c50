"""Events as fields of the journal, and the one line that tells of a refused request."""

from dataclasses import replace

from maestropy.journal.emit import Journal
from maestropy.journal.fields import Deliver, Key, Verbosity
from maestropy.server.decide import admission
from maestropy.wire import errors, event, instant, jsonevent, storable

_DELIVERIES = {
    event.Action.CREATE_REQUEST: Deliver.INSERTED,
    event.Action.UPDATE_REQUEST: Deliver.UPDATED,
    event.Action.DELETE_REQUEST: Deliver.DELETED,
}


def event_fields(journal: Journal, told: event.Event, *, whole_from: int = Verbosity.DETAIL) -> dict[str, object]:
    """Return what a line says of an event: its attributes, or all of it where the verbosity asks for that."""
    if journal.enabled(whole_from):
        shown = told if _is_json(told) else replace(told, data=b"")
        return {Key.EVENT: jsonevent.encode(shown).decode()}
    return {
        Key.EVENT_ID: told.id,
        Key.EVENT_TYPE: told.type,
        Key.EVENT_SOURCE: told.source,
        Key.EXTENSIONS: extensions(told),
    }


def _is_json(told: event.Event) -> bool:
    """Say whether the data is JSON: in anything else the journal could not find the secrets that it must hide."""
    if not told.data or not jsonevent.is_json(told.content_type):
        return False
    try:
        storable.check_json(told.data, what="data")
    except errors.WireError:
        return False
    return True


def extensions(told: event.Event) -> dict[str, object]:
    """Return the extension attributes as JSON values."""
    return {
        name: value.rfc3339() if isinstance(value, instant.Timestamp) else value
        for name, value in told.extensions.items()
    }


def delivering(journal: Journal, outgoing: event.Event, *, action: event.Action, event_id: str) -> None:
    """Write that a bundle goes to its agent, in the words by which a delivery is followed."""
    operation_id = admission.operation_id(outgoing)
    fields = {Key.EVENT: event_id, **with_operation(operation_id, outgoing.optional_text(event.RESOURCE_ID))}
    if action in _DELIVERIES:
        journal.info(_DELIVERIES[action], fields)
    if journal.enabled(2):
        journal.info(Deliver.SENDING, {**fields, **event_fields(journal, outgoing, whole_from=5)}, v=2)


def with_operation(operation_id: str, resource_id: str) -> dict[str, object]:
    """Return the two fields by which a request is followed through all processes."""
    if not operation_id:
        return {Key.RESOURCE_ID: resource_id}
    return {Key.OP_ID: operation_id, Key.RESOURCE_ID: resource_id}


def refused(journal: Journal, received: event.Event, *, operation_id: str, reason: str) -> None:
    """Write why an event was not taken; a refusal without a trace costs somebody a night."""
    journal.warning(
        "request refused",
        {
            **with_operation(operation_id, received.optional_text(event.RESOURCE_ID)),
            Key.EVENT_TYPE: received.type[:256],
            Key.EVENT_SOURCE: received.source[:256],
            Key.REASON: reason,
        },
    )


def refused_subscription(journal: Journal, name: str, *, reason: str) -> None:
    """Write why a subscription of a source or a cluster was not opened."""
    journal.warning("subscription refused", {Key.SUBSCRIBER: name[:256], Key.REASON: reason})
