"""Check flags that are seconds, before anything is opened or asked."""

from maestropy.trace.errors import InvalidArguments

LONGEST = 86_400


def checked(value: float, *, option: str) -> float:
    """Return `value`; raises `InvalidArguments` if it is no number of seconds above zero, at most a day."""
    if not 0 < value <= LONGEST:  # also what is no number
        raise InvalidArguments(f"{option} {value:g} is not a time; write seconds, such as 10, at most {LONGEST}")
    return value
