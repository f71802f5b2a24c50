"""Kubernetes' CEL libraries: lists, URLs, quantities, addresses, networks and semantic versions."""

import ipaddress
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from functools import reduce
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from maestropy.agent.decide.cel.values import (
    INT_MAX,
    INT_MIN,
    CelError,
    Duration,
    Opaque,
    Timestamp,
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
    if kinds - {int, float} and len(kinds) > 1:
        raise no_overload("")
    return items


def _is_sorted(_: str, arguments: list[Any]) -> bool:
    items = _same_kind(_list(arguments))
    return all(not items[index + 1] < items[index] for index in range(len(items) - 1))


def _sum(_: str, arguments: list[Any]) -> Any:
    items = _same_kind(_list(arguments))
    if items and isinstance(items[0], Duration):
        return Duration(sum(item.nanos for item in items))
    if any(isinstance(item, bool | str | Timestamp) for item in items):
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


def _index_of(name: str, arguments: list[Any]) -> int:
    items, wanted = arguments
    found = [index for index, item in enumerate(_list([items])) if equal(item, wanted)]
    return -1 if not found else found[0] if name == "indexOf" else found[-1]


def _list(arguments: list[Any]) -> list[Any]:
    (items,) = arguments
    if not isinstance(items, list):
        raise no_overload("")
    return items


# Quantities


def _quantity(_: str, arguments: list[Any]) -> Opaque:
    (text,) = arguments
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    digits, suffix = found.groups()
    suffix = suffix or ""
    factor = _SUFFIXES[suffix] if suffix in _SUFFIXES else Decimal(10) ** int(suffix[1:])
    return Opaque(QUANTITY, Decimal(digits) * factor)


def _quantity_math(name: str, arguments: list[Any]) -> Opaque:
    left, right = _opaque(arguments[0], QUANTITY), arguments[1]
    number = Decimal(right) if isinstance(right, int) and not isinstance(right, bool) else _opaque(right, QUANTITY)
    return Opaque(QUANTITY, left + number if name == "add" else left - number)


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


# What can be compared: quantities and versions


def _order(name: str, arguments: list[Any]) -> int | bool:
    left, right = arguments
    if not isinstance(left, Opaque) or left.type not in (QUANTITY, SEMVER):
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


def _semver(_: str, arguments: list[Any]) -> Opaque:
    text, *normalize = arguments
    if normalize and normalize[0] is True:
        text = _normalized(text)
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise CelError(
            "No Major.Minor.Patch elements found" if text.count(".") < 2 else f"Invalid version {text[:64]!r}"
        )
    return Opaque(SEMVER, found.groups())


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
    # A version comes after its own pre-releases.
    return int(major or 0), int(minor or 0), int(patch or 0), pre is None, parts


def _semver_part(name: str, arguments: list[Any]) -> int:
    return int(_opaque(arguments[0], SEMVER)[("major", "minor", "patch").index(name)])


# URLs


def _url(_: str, arguments: list[Any]) -> Opaque:
    (text,) = arguments
    try:
        found = urlsplit(text)
        is_absolute = bool(found.scheme) or text.startswith("/")
    except ValueError as error:
        raise CelError(f"URL parse error during conversion from string: {str(error)[:100]}") from error
    if not is_absolute or " " in found.netloc:
        raise CelError(f'URL parse error during conversion from string: parse "{text[:100]}": invalid URI for request')
    return Opaque(URL, found)


def _url_part(name: str, arguments: list[Any]) -> Any:
    found = _opaque(arguments[0], URL)
    match name:
        case "getScheme":
            return found.scheme
        case "getHost":
            return found.netloc.rpartition("@")[2]
        case "getHostname":
            return found.hostname or ""
        case "getPort":
            return found.netloc.rpartition("]")[2].rpartition("@")[2].partition(":")[2]
        case "getEscapedPath":
            return quote(found.path, safe="/%:@!$&'()*+,;=~-._")
        case _:
            return parse_qs(found.query, keep_blank_values=True)


# Addresses and networks


def _ip(_: str, arguments: list[Any]) -> Opaque:
    (value,) = arguments
    if isinstance(value, Opaque):
        return Opaque(IP, _opaque(value, CIDR).ip)
    if "%" in value:
        raise CelError(f"IP Address {value!r} with zone value is not allowed")
    try:
        return Opaque(IP, ipaddress.ip_address(value))
    except ValueError as error:
        raise CelError(f'IP Address "{value[:64]}" parse error during conversion from string') from error


def _cidr(_: str, arguments: list[Any]) -> Opaque:
    (value,) = arguments
    if "/" not in value or "%" in value:
        raise CelError(f'network address parse error during conversion from string: no "/" in {value[:64]!r}')
    try:
        return Opaque(CIDR, ipaddress.ip_interface(value))
    except ValueError as error:
        raise CelError(f"network address parse error during conversion from string: {value[:64]!r}") from error


def _ip_fact(name: str, arguments: list[Any]) -> int | bool:
    found = _opaque(arguments[0], IP)
    match name:
        case "family":
            return int(found.version)
        case "isUnspecified":
            return bool(found.is_unspecified)
        case "isLoopback":
            return bool(found.is_loopback)
        case "isLinkLocalMulticast":
            network = "224.0.0.0/24" if found.version == 4 else "ff02::/16"
            return bool(found in ipaddress.ip_network(network))
        case "isLinkLocalUnicast":
            return bool(found.is_link_local)
        case _:
            return not any((found.is_unspecified, found.is_loopback, found.is_multicast, found.is_link_local))


def _is_canonical(_: str, arguments: list[Any]) -> bool:
    (text,) = arguments
    return bool(str(_ip("ip", [text]).value) == text)


def _within(name: str, arguments: list[Any]) -> bool:
    network, value = _opaque(arguments[0], CIDR).network, arguments[1]
    if name == "containsIP":
        found = value if isinstance(value, Opaque) else _ip("ip", [value])
        return bool(_opaque(found, IP) in network)
    inner = _opaque(value if isinstance(value, Opaque) else _cidr("cidr", [value]), CIDR).network
    return bool(inner.version == network.version and inner.subnet_of(network))


def _cidr_fact(name: str, arguments: list[Any]) -> Any:
    found = _opaque(arguments[0], CIDR)
    if name == "prefixLength":
        return found.network.prefixlen
    return Opaque(CIDR, ipaddress.ip_interface(found.network))


def _opaque(value: Any, kind: str) -> Any:
    if isinstance(value, Opaque) and value.type == kind:
        return value.value
    raise no_overload("")


def _succeeds(convert: Callable[[str, list[Any]], Any]) -> Callable[[str, list[Any]], bool]:
    """Return the question whether a conversion would succeed."""

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
        {"indexOf": _index_of, "lastIndexOf": _index_of},
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
