"""Read the operation ID of an event. Pure."""

import msgspec

from maestropy.wire.events import event

_LENGTH_LIMIT = 128


def operation_id(passing: event.CloudEvent) -> str:
    """Return the operation ID that the source set for tracing, or an empty string."""
    text = passing.optional_text(event.LOG_TRACING)
    if event.OPERATION_ID_KEY not in text:
        return ""
    try:
        value = msgspec.json.decode(text, type=dict[str, str]).get(event.OPERATION_ID_KEY, "")
    except msgspec.DecodeError:
        return ""
    return value[:_LENGTH_LIMIT]
