"""Parse and render durations in Go's notation: `2m0s`, `500ms`, `1.5h`. Pure."""

import re
from datetime import timedelta
from fractions import Fraction

# The units of Go's time.ParseDuration; there is no unit for days.
_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),
    "μs": Fraction(1),
    "ms": Fraction(1000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")

# The longest duration of Go, 2^63-1 nanoseconds or about 292 years. It means "never".
LONGEST = timedelta(microseconds=(2**63 - 1) // 1000)


def parse(text: str) -> timedelta:
    """Parse a duration; raise ValueError if `text` is none."""
    unsigned = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    if unsigned == "0":
        return timedelta()
    if not unsigned or not re.fullmatch(f"(?:{_PART.pattern})+", unsigned, re.ASCII):
        raise ValueError(text)
    total = sum(Fraction(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(unsigned))
    if total * 1000 > 2**63 - 1:
        raise ValueError(text)
    return timedelta(microseconds=int(total)) * (-1 if text.startswith("-") else 1)


def seconds(text: str) -> float:
    """Parse a number of seconds or a duration, and return seconds; raise ValueError if `text` is neither."""
    trimmed = text.strip()
    return parse(trimmed).total_seconds() if trimmed[-1:].isalpha() else float(trimmed)


def render(length: timedelta) -> str:
    """Return `length` as Go prints it, to the microsecond."""
    if length < timedelta():
        return "-" + render(-length)
    microseconds = length // timedelta(microseconds=1)
    if not microseconds:
        return "0s"
    if microseconds < 1000:
        return f"{microseconds}µs"
    if microseconds < 1_000_000:
        return f"{_decimal(microseconds, 1000)}ms"
    minutes, remainder = divmod(microseconds, 60_000_000)
    seconds = f"{_decimal(remainder, 1_000_000)}s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


def _decimal(amount: int, unit: int) -> str:
    whole, remainder = divmod(amount, unit)
    digits = f"{remainder:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
