"""Can an outside broker carry this bundle? Told to the source when it asks, not found out when it is too late."""

from maestropy.wire import mqtt, record

# For the topic and for what the server adds; whoever sends measures the real message.
_ADDED_BYTES = 1024


def problem(parts: record.Parts, *, max_packet_bytes: int) -> str:
    """Return why the broker would not take the bundle, or nothing."""
    if len(parts.metadata) > mqtt.STRING_MAX_BYTES:
        return (
            f"its metadata has {len(parts.metadata)} bytes and MQTT carries at most {mqtt.STRING_MAX_BYTES}; "
            "make labels and annotations smaller"
        )
    size = len(parts.envelope) + len(parts.metadata) + len(parts.data) + _ADDED_BYTES
    if size > max_packet_bytes:
        return (
            f"it needs about {size} bytes and the message broker takes at most {max_packet_bytes}; "
            "split the bundle, or raise the broker's maximum packet size"
        )
    return ""
