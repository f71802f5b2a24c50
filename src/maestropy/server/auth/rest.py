"""Authenticate REST clients with a signed token (JWT), if the operator requires one.

Only public-key signatures with configured algorithms are accepted, and an expiry is required. No token is stored or
quoted in an error. `roles` decides what the client may do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import jwt

from maestropy.server.auth.review_cache import Clock
from maestropy.server.auth.roles import RestCaller, RoleMapping
from maestropy.server.auth.signing_keys import SAFE_ALGORITHMS, KeysUnavailable, SigningKeys
from maestropy.transport.peer_identity import PeerIdentity, bearer_token

_REASON: Final = "Account authentication could not be verified"


class Unverified(Exception):
    """The request gets HTTP 401 and error ID 15."""

    error_id: Final = 15
    status: Final = 401

    def __init__(self, detail: str) -> None:
        super().__init__(f"{_REASON}: {detail}")
        self.reason = str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """Requirements on a token."""

    keys: str
    """The JSON Web Key Set of the issuer: a file path or an https URL."""

    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """Accepted signature algorithms. `none` and the HS family are rejected at start."""

    issuer: str | None = None
    """Required `iss`; None accepts any issuer whose key is in the set."""

    audience: str | None = None
    """Required `aud`; None accepts any audience."""

    leeway: float = 30.0
    """Allowed clock difference to the issuer, in seconds."""

    user_claim: str = "sub"
    """The claim with the user; a token without it is rejected."""

    groups_claim: str = "groups"
    """The claim with the groups of the user; absent means none."""

    roles: RoleMapping = field(default_factory=RoleMapping)
    """The claims with the role and the sources of the user."""

    def __post_init__(self) -> None:
        unsafe = [name for name in self.algorithms if name not in SAFE_ALGORITHMS]
        if unsafe or not self.algorithms:
            raise ValueError(
                f"algorithms: {', '.join(unsafe) or 'none given'}; choose from {', '.join(sorted(SAFE_ALGORITHMS))}"
            )


class RestAuthenticator:
    """Authenticates every REST request."""

    def __init__(self, settings: JwtSettings, *, clock: Clock, on_problem: Callable[[str], None]) -> None:
        self._settings = settings
        self._keys = SigningKeys(settings.keys, algorithms=settings.algorithms, clock=clock, on_problem=on_problem)

    async def authenticate(self, authorization: str | None) -> RestCaller:
        """Return the client of the token in the `Authorization` header; raises `Unverified`."""
        token = bearer_token(authorization)
        if token is None:
            raise Unverified("send the header Authorization: Bearer <token>")
        claims = await self._claims(token, self._settings)
        try:
            return self._settings.roles.client(read_claims(claims, settings=self._settings), claims)
        except jwt.PyJWTError as error:
            raise Unverified(_explain(error)) from error

    async def id_token(self, token: str, *, issuer: str, audience: str) -> Mapping[str, object]:
        """Return the claims of an ID token, which is meant for one client of the issuer; raises `Unverified`."""
        return await self._claims(token, replace(self._settings, issuer=issuer, audience=audience))

    async def _claims(self, token: str, settings: JwtSettings) -> Mapping[str, object]:
        try:
            key = await self._find_key(token)
            return _verify(token, key=key, settings=settings)
        except jwt.PyJWTError as error:
            raise Unverified(_explain(error)) from error
        except KeysUnavailable as error:
            raise Unverified("the server has no signing keys to check it with; try again later") from error

    async def _find_key(self, token: str) -> jwt.PyJWK:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        # Checked before the keys are looked up: a token that can never be valid must not cause a read.
        if algorithm not in self._settings.algorithms:
            raise jwt.InvalidAlgorithmError
        key = await self._keys.find(header.get("kid"), algorithm=algorithm)
        if key is None:
            raise jwt.InvalidKeyError
        return key


def _verify(token: str, *, key: jwt.PyJWK, settings: JwtSettings) -> Mapping[str, object]:
    claims: Mapping[str, object] = jwt.decode(
        token,
        key,
        algorithms=list(settings.algorithms),
        issuer=settings.issuer,
        audience=settings.audience,
        leeway=settings.leeway,
        options={"require": ["exp"], "verify_aud": settings.audience is not None},
    )
    return claims


def read_claims(claims: Mapping[str, object], *, settings: JwtSettings) -> PeerIdentity:
    """Return the user and groups of verified claims."""
    user = claims.get(settings.user_claim)
    if not isinstance(user, str) or not user:
        raise jwt.MissingRequiredClaimError(settings.user_claim)
    groups = claims.get(settings.groups_claim)
    listed = groups if isinstance(groups, list) else []
    return PeerIdentity(user=user, groups=tuple(group for group in listed if isinstance(group, str)))


_EXPLANATIONS: Final[tuple[tuple[type[jwt.PyJWTError], str], ...]] = (
    (jwt.ExpiredSignatureError, "the token has expired; get a new one"),
    (jwt.ImmatureSignatureError, "the token is not valid yet; check the clocks"),
    (jwt.InvalidAudienceError, "the token is meant for another audience"),
    (jwt.InvalidIssuerError, "the token comes from another issuer"),
    (jwt.InvalidAlgorithmError, "the token is signed with an algorithm that is not accepted here"),
    (jwt.InvalidKeyError, "the token is signed with a key that is not known here"),
    (jwt.InvalidSignatureError, "the token's signature is wrong"),
)


def _explain(error: jwt.PyJWTError) -> str:
    """Return a text for the client; the message of the library may quote the token."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"the token lacks the claim {error.claim}"
    return next((text for kind, text in _EXPLANATIONS if isinstance(error, kind)), "the token is malformed")
