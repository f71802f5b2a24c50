"""Log fields of CloudEvents, and the log records of dispatched events and rejected requests."""

from dataclasses import replace
from typing import TypeVar

from maestropy.journal.emit import Journal
from maestropy.journal.fields import LogKey, Verbosity
from maestropy.journal.phrases import SpecDispatcherPhrase, SpecWriterPhrase, StatusDispatcherPhrase
from maestropy.server.decide import admission
from maestropy.wire import errors, storable_json, timestamps
from maestropy.wire.events import event, json_format

_Value = TypeVar("_Value")

_MAX_VALUE_LENGTH = 16 * 1024

_DISPATCH_PHRASES = {
    event.EventAction.CREATE_REQUEST: SpecDispatcherPhrase.INSERTED,
    event.EventAction.UPDATE_REQUEST: SpecDispatcherPhrase.UPDATED,
    event.EventAction.DELETE_REQUEST: SpecDispatcherPhrase.DELETED,
}


def event_fields(
    journal: Journal, cloud_event: event.CloudEvent, *, whole_from: int = Verbosity.DETAIL
) -> dict[str, object]:
    """Return the log fields of an event: its attributes, or the whole event from verbosity `whole_from` on."""
    if journal.is_enabled(whole_from):
        logged = cloud_event if _is_json(cloud_event) else replace(cloud_event, data=b"")
        return {LogKey.EVENT: json_format.encode(logged).decode()}
    return {
        LogKey.EVENT_ID: _shortened(cloud_event.id),
        LogKey.EVENT_TYPE: _shortened(cloud_event.type),
        LogKey.EVENT_SOURCE: _shortened(cloud_event.source),
        LogKey.EXTENSIONS: extensions(cloud_event),
    }


def _is_json(cloud_event: event.CloudEvent) -> bool:
    """Return whether the data is JSON: only in JSON the log can find and hide secrets."""
    if not cloud_event.data or not json_format.is_json(cloud_event.content_type):
        return False
    try:
        storable_json.check_json(cloud_event.data, label="data")
    except errors.WireError:
        return False
    return True


def extensions(cloud_event: event.CloudEvent) -> dict[str, object]:
    """Return the extension attributes as JSON values."""
    return {
        name: value.rfc3339() if isinstance(value, timestamps.Timestamp) else _shortened(value)
        for name, value in cloud_event.extensions.items()
    }


def _shortened(value: _Value) -> _Value | str:
    """Return a text without what exceeds the length of a log value."""
    if isinstance(value, str) and len(value) > _MAX_VALUE_LENGTH:
        return f"{value[:_MAX_VALUE_LENGTH]}... ({len(value)} characters)"
    return value


def log_dispatch(journal: Journal, outgoing: event.CloudEvent, *, action: event.EventAction, event_id: str) -> None:
    """Log that a resource is sent to its agent, with the messages of the Go server."""
    if action not in _DISPATCH_PHRASES and not journal.is_enabled(2):
        return
    operation_id = admission.operation_id(outgoing)
    fields = {LogKey.EVENT: event_id, **with_operation(operation_id, outgoing.optional_text(event.RESOURCE_ID))}
    if action in _DISPATCH_PHRASES:
        journal.info(_DISPATCH_PHRASES[action], fields)
    if journal.is_enabled(2):
        journal.info(SpecDispatcherPhrase.SENDING, {**fields, **event_fields(journal, outgoing, whole_from=5)}, v=2)


def with_operation(operation_id: str, resource_id: str) -> dict[str, object]:
    """Return operation ID and resource ID, by which a request is traced through all processes."""
    if not operation_id:
        return {LogKey.RESOURCE_ID: resource_id}
    return {LogKey.OP_ID: operation_id, LogKey.RESOURCE_ID: resource_id}


def log_rejection(journal: Journal, received: event.CloudEvent, *, operation_id: str, reason: str) -> None:
    """Log why an event of a source or an agent was rejected."""
    journal.warning(
        SpecWriterPhrase.REJECTED,
        {
            **with_operation(operation_id, received.optional_text(event.RESOURCE_ID)),
            LogKey.EVENT_TYPE: received.type[:256],
            LogKey.EVENT_SOURCE: received.source[:256],
            LogKey.REASON: reason,
        },
    )


def log_rejected_subscription(journal: Journal, name: str, *, reason: str) -> None:
    """Log why a subscription of a source or an agent was rejected."""
    journal.warning(
        StatusDispatcherPhrase.SUBSCRIPTION_REJECTED, {LogKey.SUBSCRIBER: name[:256], LogKey.REASON: reason}
    )
