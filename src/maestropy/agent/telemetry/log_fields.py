"""Turn CloudEvents into log fields, so that a trace finds operation, work and version in each record."""

import itertools

from maestropy.journal.fields import LogKey
from maestropy.wire import timestamps
from maestropy.wire.events import event, log_tracing

_SHOWN_MAX = 4096
_EXTENSIONS_SHOWN = 64


def event_fields(passing: event.CloudEvent) -> dict[str, object]:
    """Return the log fields of an event that is sent or received."""
    fields: dict[str, object] = (
        {LogKey.OP_ID: operation_id} if (operation_id := log_tracing.operation_id(passing)) else {}
    )
    fields[LogKey.EVENT_TYPE] = _shortened(passing.type)
    extensions: dict[str, object] = {
        _shortened(name): value.rfc3339()
        if isinstance(value, timestamps.Timestamp)
        else _shortened(value)
        if isinstance(value, str)
        else value
        for name, value in itertools.islice(passing.extensions.items(), _EXTENSIONS_SHOWN)
    }
    if len(passing.extensions) > _EXTENSIONS_SHOWN:
        extensions["…"] = f"{len(passing.extensions) - _EXTENSIONS_SHOWN} more"
    fields[LogKey.EXTENSIONS] = extensions
    return fields


def _shortened(text: str) -> str:
    """Return a text of which others decide the length, cut with a note: the log is written between events."""
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}… ({len(text)} characters)"
