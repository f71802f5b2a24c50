"""Events as fields of the journal, so that a trace finds operation, work and version in every line about one."""

import msgspec

from maestropy.journal.fields import Key
from maestropy.wire import event, instant


def event_fields(told: event.Event) -> dict[str, object]:
    """Return what a line says of an event that passes the broker."""
    fields: dict[str, object] = {Key.OP_ID: found} if (found := _operation(told)) else {}
    fields[Key.EVENT_TYPE] = told.type
    fields[Key.EXTENSIONS] = {
        name: value.rfc3339() if isinstance(value, instant.Timestamp) else value
        for name, value in told.extensions.items()
    }
    return fields


def _operation(told: event.Event) -> str:
    text = told.optional_text(event.LOG_TRACING)
    if event.OPERATION_ID_KEY not in text:
        return ""
    try:
        return msgspec.json.decode(text, type=dict[str, str]).get(event.OPERATION_ID_KEY, "")[:128]
    except msgspec.DecodeError:
        return ""
