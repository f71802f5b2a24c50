"""Count the attributes of a serialised CloudEvent without decoding them.

The protobuf library needs 100 ms for 170,000 attributes, which fit into one message. The count stops at the limit.
"""

from maestropy.wire.events.attribute_limits import MAX_ATTRIBUTES, check_count

_SMALL = 8 * 1024
"""A message of this size is decoded in no time."""
_EVENT = 0x0A
_ATTRIBUTE = 0x2A
_VARINT_MAX_BYTES = 10


def check_publish(request: bytes) -> None:
    """Reject a PublishRequest whose event has too many attributes; any other mistake is left to the decoder."""
    if len(request) <= _SMALL:
        return
    try:
        tag, position = _varint(request, 0)
        if tag == _EVENT:
            _, position = _varint(request, position)
            _check_event(request, position)
    except (IndexError, _NotProtobufError):
        return


class _NotProtobufError(Exception):
    pass


def _check_event(message: bytes, position: int) -> None:
    """Walk over the fields of an event; none is looked into."""
    attributes = 0
    while position < len(message) and attributes <= MAX_ATTRIBUTES:
        tag, position = _varint(message, position)
        if tag & 7 != 2:  # all fields of an event are length-delimited
            raise _NotProtobufError
        attributes += tag == _ATTRIBUTE
        size, position = _varint(message, position)
        position += size
    check_count(attributes, is_complete=position >= len(message))


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = 0
    for index in range(_VARINT_MAX_BYTES):
        byte = message[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise _NotProtobufError
