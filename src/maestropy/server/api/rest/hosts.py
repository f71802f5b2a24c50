"""Decide whether the `Host` header of a request names this server.

Pure. A web page of `attacker.example` whose DNS name changes to the address of this server (DNS rebinding) is of the
same origin for the browser, so it could read and write the API. Its requests still carry its own name. Names that no
public DNS serves are therefore accepted, as are IP addresses; every other name must be configured.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final

EVERY_NAME: Final = "*"
_PRIVATE_SUFFIXES: Final = (".localhost", ".svc", ".cluster.local")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """The names that are accepted besides IP addresses and private names."""

    names: tuple[str, ...] = ()

    def allows(self, header: str | None) -> bool:
        """Return whether a request with this header is served; every browser sends one."""
        if header is None or EVERY_NAME in self.names:
            return True
        name = host_name(header)
        return _is_private(name) or any(_matches(name, pattern.lower().rstrip(".")) for pattern in self.names)


def host_name(header: str) -> str:
    """Return the host of a `Host` header without its port, in lower case."""
    text = header.strip().lower()
    if text.startswith("["):
        address, _, port = text[1:].partition("]")
        return address if not port or port.startswith(":") else text
    return text.partition(":")[0].rstrip(".")


def _is_private(name: str) -> bool:
    if "." not in name and ":" not in name:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name.endswith(_PRIVATE_SUFFIXES)
    return True


def _matches(name: str, pattern: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern
