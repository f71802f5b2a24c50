"""Convert feedback values into classes of the user: msgspec structs, dataclasses, TypedDicts, pydantic models. Pure."""

from typing import Any, TypeVar

import msgspec

from maestropy.sdk.errors import Invalid

Value = TypeVar("Value")


def convert(value: Any, into: type[Value], *, name: str) -> Value:
    """Return a decoded JSON value as an instance of `into`; raises Invalid with the field that does not match.

    Fields that the class does not have are ignored, unless the class forbids them.
    """
    # By its method: pydantic is no dependency of the client.
    validate = getattr(into, "model_validate", None)
    try:
        if validate is not None:
            model: Value = validate(value)
            return model
        return msgspec.convert(value, into, str_keys=True)
    except (msgspec.MsgspecError, ValueError) as error:
        shown = " ".join(str(error).split())
        raise Invalid(
            f"feedback {name!r} is not a {into.__name__}: {shown}", advice="change the class, or read it without one"
        ) from error
