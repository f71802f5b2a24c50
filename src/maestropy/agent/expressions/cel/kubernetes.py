"""Implement Kubernetes' CEL libraries: lists, URLs, quantities, IP addresses, CIDRs and semantic versions."""

import ipaddress
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import reduce
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from maestropy.agent.expressions.budget import Budget
from maestropy.agent.expressions.cel.values import (
    INT_MAX,
    INT_MIN,
    CelDuration,
    CelError,
    CelOpaque,
    CelOptional,
    CelTimestamp,
    equal,
    no_overload,
)

QUANTITY = "kubernetes.Quantity"
URL = "kubernetes.URL"
IP = "net.IP"
CIDR = "net.CIDR"
SEMVER = "kubernetes.Semver"

_SUFFIXES = {
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("", "k", "M", "G", "T", "P", "E"))},
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
}
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]{1,40}\.?[0-9]{0,20}|\.[0-9]{1,20}))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"
)
_SEMVER = re.compile(
    r"(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z.-]+))?"
)


# Lists


def _same_kind(items: list[Any]) -> list[Any]:
    kinds = {type(item) for item in items}
    # Lists and maps have no order in CEL, and comparing nested ones would not be charged.
    if (kinds - {int, float} and len(kinds) > 1) or kinds & {list, dict, CelOptional, type(None)}:
        raise no_overload("")
    return items


def _is_sorted(_: str, arguments: list[Any]) -> bool:
    items = _same_kind(_list(arguments))
    return all(not items[index + 1] < items[index] for index in range(len(items) - 1))


def _sum(_: str, arguments: list[Any]) -> Any:
    items = _same_kind(_list(arguments))
    if items and isinstance(items[0], CelDuration):
        return CelDuration(sum(item.nanos for item in items))
    if any(isinstance(item, bool | str | CelTimestamp) for item in items):
        raise no_overload("")
    total = sum(items)
    if isinstance(total, int) and not INT_MIN <= total <= INT_MAX:
        raise CelError("integer overflow")
    return total


def _extreme(name: str, arguments: list[Any]) -> Any:
    items = _same_kind(_list(arguments))
    if not items:
        raise CelError(f"{name} called on empty list")
    return min(items) if name == "min" else max(items)


def index_of(name: str, arguments: list[Any], budget: Budget) -> int:
    """Return the index of the first or the last equal item, or -1."""
    items, value = arguments
    order = range(len(_list([items])))
    for index in order if name == "indexOf" else reversed(order):
        if equal(items[index], value, budget=budget):
            return index
    return -1


def _list(arguments: list[Any]) -> list[Any]:
    (items,) = arguments
    if not isinstance(items, list):
        raise no_overload("")
    return items


# Quantities


def _quantity(_: str, arguments: list[Any]) -> CelOpaque:
    (text,) = arguments
    matched = _QUANTITY.fullmatch(text)
    if matched is None:
        raise CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    digits, suffix = matched.groups()
    suffix = suffix or ""
    factor = _SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(10) ** int(suffix[1:])
    return CelOpaque(QUANTITY, Decimal(digits) * factor)


def _quantity_math(name: str, arguments: list[Any]) -> CelOpaque:
    left, right = _opaque(arguments[0], QUANTITY), arguments[1]
    number = Decimal(right) if isinstance(right, int) and not isinstance(right, bool) else _opaque(right, QUANTITY)
    return CelOpaque(QUANTITY, left + number if name == "add" else left - number)


def _sign(_: str, arguments: list[Any]) -> int:
    value = _opaque(arguments[0], QUANTITY)
    return int(value > 0) - int(value < 0)


def _as_number(name: str, arguments: list[Any]) -> int | float | bool:
    value = _opaque(arguments[0], QUANTITY)
    if name == "asApproximateFloat":
        return float(value)
    is_integer = bool(value == value.to_integral_value(ROUND_CEILING)) and INT_MIN <= value <= INT_MAX
    if name == "isInteger":
        return is_integer
    if not is_integer:
        raise CelError("cannot convert value to integer")
    return int(value)


# Quantities and semantic versions are comparable


def _order(name: str, arguments: list[Any]) -> int | bool:
    left, right = arguments
    if not isinstance(left, CelOpaque) or left.type not in (QUANTITY, SEMVER):
        raise no_overload("")
    first, second = left.value, _opaque(right, left.type)
    if left.type == SEMVER:
        first, second = _precedence(first), _precedence(second)
    match name:
        case "compareTo":
            return int(first > second) - int(first < second)
        case "isGreaterThan":
            return bool(first > second)
        case _:
            return bool(first < second)


def _semver(_: str, arguments: list[Any]) -> CelOpaque:
    text, *normalize = arguments
    if normalize and normalize[0] is True:
        text = _normalized(text)
    matched = _SEMVER.fullmatch(text)
    if matched is None:
        raise CelError(
            "No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid version {text[:64]!r}"
        )
    return CelOpaque(SEMVER, matched.groups())


def _normalized(text: str) -> str:
    core, _, rest = text.removeprefix("v").partition("-")
    numbers = [number.lstrip("0") or "0" for number in core.split(".")]
    numbers += ["0"] * (3 - len(numbers))
    return ".".join(numbers) + (f"-{rest}" if rest else "")


def _precedence(version: tuple[str | None, ...]) -> tuple[Any, ...]:
    major, minor, patch, pre, _ = version
    parts = (
        tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in (pre or "").split("."))
        if pre
        else ()
    )
    # A version is greater than its own pre-releases.
    return int(major or 0), int(minor or 0), int(patch or 0), pre is None, parts


def _semver_part(name: str, arguments: list[Any]) -> int:
    return int(_opaque(arguments[0], SEMVER)[("major", "minor", "patch").index(name)])


# URLs


def _url(_: str, arguments: list[Any]) -> CelOpaque:
    (text,) = arguments
    try:
        url = urlsplit(text)
        is_absolute = bool(url.scheme) or text.startswith("/")
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {str(error)[:100]}") from error
    if not is_absolute or " " in url.netloc:
        raise CelError(f'URL parse error during conversion from string: parse "{text[:100]}": invalid URI for request')
    return CelOpaque(URL, url)


def _url_part(name: str, arguments: list[Any]) -> Any:
    url = _opaque(arguments[0], URL)
    match name:
        case "getScheme":
            return url.scheme
        case "getHost":
            return url.netloc.rpartition("@")[2]
        case "getHostname":
            return url.hostname or ""
        case "getPort":
            return url.netloc.rpartition("]")[2].rpartition("@")[2].partition(":")[2]
        case "getEscapedPath":
            return quote(url.path, safe="/%:@!$&'()*+,;=~-._")
        case _:
            return parse_qs(url.query, keep_blank_values=True)


# IP addresses and CIDRs


def _ip(_: str, arguments: list[Any]) -> CelOpaque:
    (value,) = arguments
    if isinstance(value, CelOpaque):
        return CelOpaque(IP, _opaque(value, CIDR).ip)
    if "%" in value:
        raise CelError(f"IP Address {value!r} with zone value is not allowed")
    try:
        return CelOpaque(IP, ipaddress.ip_address(value))
    except ValueError as error:
        raise CelError(f'IP Address "{value[:64]}" parse error during conversion from string') from error


def _cidr(_: str, arguments: list[Any]) -> CelOpaque:
    (value,) = arguments
    if "/" not in value or "%" in value:
        raise CelError(f'network address parse error during conversion from string: no "/" in {value[:64]!r}')
    try:
        return CelOpaque(CIDR, ipaddress.ip_interface(value))
    except ValueError as error:
        raise CelError(f"network address parse error during conversion from string: {value[:64]!r}") from error


def _ip_fact(name: str, arguments: list[Any]) -> int | bool:
    address = _opaque(arguments[0], IP)
    match name:
        case "family":
            return int(address.version)
        case "isUnspecified":
            return bool(address.is_unspecified)
        case "isLoopback":
            return bool(address.is_loopback)
        case "isLinkLocalMulticast":
            network = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
            return bool(address in ipaddress.ip_network(network))
        case "isLinkLocalUnicast":
            return bool(address.is_link_local)
        case _:
            return not any((address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local))


def _is_canonical(_: str, arguments: list[Any]) -> bool:
    (text,) = arguments
    return bool(str(_ip("ip", [text]).value) == text)


def _within(name: str, arguments: list[Any]) -> bool:
    network, value = _opaque(arguments[0], CIDR).network, arguments[1]
    if name == "containsIP":
        address = value if isinstance(value, CelOpaque) else _ip("ip", [value])
        return bool(_opaque(address, IP) in network)
    inner = _opaque(value if isinstance(value, CelOpaque) else _cidr("cidr", [value]), CIDR).network
    return bool(inner.version == network.version and inner.subnet_of(network))


def _cidr_fact(name: str, arguments: list[Any]) -> Any:
    cidr = _opaque(arguments[0], CIDR)
    if name == "prefixLength":
        return cidr.network.prefixlen
    return CelOpaque(CIDR, ipaddress.ip_interface(cidr.network))


def _opaque(value: Any, kind: str) -> Any:
    if isinstance(value, CelOpaque) and value.type == kind:
        return value.value
    raise no_overload("")


def _succeeds(convert: Callable[[str, list[Any]], Any]) -> Callable[[str, list[Any]], bool]:
    """Return a function that tells whether a conversion would succeed."""

    def question(name: str, arguments: list[Any]) -> bool:
        if not isinstance(arguments[0], str):
            raise no_overload("")
        try:
            convert(name, arguments)
        except (CelError, InvalidOperation):
            return False
        return True

    return question


_IP_FACTS = (
    "family",
    "isUnspecified",
    "isLoopback",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
)

FUNCTIONS: dict[str, Callable[[str, list[Any]], Any]] = reduce(
    dict.__or__,  # one table per library
    (
        {"isSorted": _is_sorted, "sum": _sum, "min": _extreme, "max": _extreme},
        {"quantity": _quantity, "isQuantity": _succeeds(_quantity), "sign": _sign},
        {"add": _quantity_math, "sub": _quantity_math},
        dict.fromkeys(("isInteger", "asInteger", "asApproximateFloat"), _as_number),
        dict.fromkeys(("compareTo", "isGreaterThan", "isLessThan"), _order),
        {"semver": _semver, "isSemver": _succeeds(_semver)},
        dict.fromkeys(("major", "minor", "patch"), _semver_part),
        {"url": _url, "isURL": _succeeds(_url)},
        dict.fromkeys(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"), _url_part),
        {"ip": _ip, "isIP": _succeeds(_ip), "ip.isCanonical": _is_canonical},
        dict.fromkeys(_IP_FACTS, _ip_fact),
        {"cidr": _cidr, "isCIDR": _succeeds(_cidr), "containsIP": _within, "containsCIDR": _within},
        {"masked": _cidr_fact, "prefixLength": _cidr_fact},
    ),
)
