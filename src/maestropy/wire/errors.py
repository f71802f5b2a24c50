"""What is wrong with something that came over the wire, told so that its sender can mend it."""


class WireError(Exception):
    """An event, or a part of one, breaks the protocol. The text is meant for the sender."""


class Malformed(WireError):
    """Bytes that are not what they claim to be, or a field that is missing or has the wrong type."""


class Unsupported(WireError):
    """Well-formed, but a kind of event this protocol does not carry."""


class Invalid(WireError):
    """Understood, but the content breaks a rule (a manifest without a name, two manifests for one object)."""


class Unstorable(Invalid):
    """Understood, but no database or reader along the way could hold it; it must not come any further."""
