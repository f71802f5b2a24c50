"""Decide what a REST client may do: its role, and the sources whose resource bundles it sees.

Pure. The claims of a verified token name both; `RoleMapping` says where. Without authentication every client is
`UNRESTRICTED`; the settings allow that only on loopback, or if the operator accepts it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from maestropy.transport.peer_identity import ANONYMOUS, PeerIdentity

EVERY_SOURCE: Final = "*"


class Role(IntEnum):
    """The roles of REST clients; each includes the ones before it."""

    NONE = 0
    READ = 1
    WRITE = 2
    """Create, label and resync consumers, delete and resend resource bundles."""

    ADMIN = 3
    """Delete, pause and retire consumers, sweep, adopt; never limited to sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestCaller:
    """The client of one REST request."""

    identity: PeerIdentity
    role: Role
    sources: frozenset[str] | None = None
    """The sources whose resource bundles the client may see and delete; None: all."""


UNRESTRICTED: Final = RestCaller(identity=ANONYMOUS, role=Role.ADMIN)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleMapping:
    """How the claims of a token name roles and sources."""

    claim: str = "roles"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    admin: tuple[str, ...] = ()
    default: Role = Role.NONE
    source_claim: str | None = None

    def client(self, identity: PeerIdentity, claims: Mapping[str, object]) -> RestCaller:
        """Return the client with the role and the sources of `claims`."""
        role = self._role(claims)
        if self.source_claim is None or role is Role.ADMIN:
            return RestCaller(identity=identity, role=role)
        sources = frozenset(claim_values(claims, self.source_claim))
        return RestCaller(identity=identity, role=role, sources=None if EVERY_SOURCE in sources else sources)

    def _role(self, claims: Mapping[str, object]) -> Role:
        values = set(claim_values(claims, self.claim))
        mapped = ((Role.ADMIN, self.admin), (Role.WRITE, self.write), (Role.READ, self.read))
        return next((role for role, names in mapped if not values.isdisjoint(names)), self.default)


def claim_values(claims: Mapping[str, object], claim: str) -> tuple[str, ...]:
    """Return the texts of a claim: a list, or one text with spaces between them; nothing for other shapes."""
    value: object = claims.get(claim)
    if value is None:
        # Issuers such as Keycloak put roles into objects: realm_access.roles.
        value = claims
        for key in claim.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return tuple(value.split())
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
