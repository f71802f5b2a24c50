"""Errors of received messages; their texts tell the sender what to change."""


class WireError(Exception):
    """An event, or a part of one, violates the protocol. The text is meant for the sender."""


class MalformedMessage(WireError):
    """A message cannot be decoded, or a field is missing or has the wrong type."""


class UnsupportedEvent(WireError):
    """The event is well-formed, but its type is not part of the protocol."""


class InvalidContent(WireError):
    """The event is well-formed, but its content violates a rule: a manifest without a name, a duplicate manifest."""


class UnstorableContent(InvalidContent):
    """The content is valid JSON, but PostgreSQL or a later reader cannot hold it."""
