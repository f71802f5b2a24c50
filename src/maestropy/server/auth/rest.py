"""Decide who a REST client is from a signed token (JWT), where the operator asks for one.

Answers: who does this `Authorization` header name? Public-key signatures only, by pinned algorithms;
an expiry is required. It stores no token and no secret, and no text it raises repeats one.
What the client may then do is not decided here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import jwt

from maestropy.server.auth.remembered import Clock
from maestropy.server.auth.signing_keys import SAFE_ALGORITHMS, KeysUnavailable, SigningKeys
from maestropy.transport.identity import Identity, bearer_token

_REASON: Final = "Account authentication could not be verified"


class Unverified(Exception):
    """The request must be answered with HTTP 401 and error id 15."""

    error_id: Final = 15
    status: Final = 401

    def __init__(self, detail: str) -> None:
        super().__init__(f"{_REASON}: {detail}")
        self.reason = str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtSettings:
    """What a token has to satisfy."""

    keys: str
    """The issuer's JSON Web Key Set: a file path or an https URL."""

    algorithms: tuple[str, ...] = ("RS256", "ES256")
    """The signature algorithms taken. `none` and the HS family are refused at start."""

    issuer: str | None = None
    """The `iss` a token must carry; None takes any issuer whose key is in the set."""

    audience: str | None = None
    """The `aud` a token must be meant for; None takes tokens for any audience."""

    leeway: float = 30.0
    """Seconds by which the issuer's clock may differ from ours."""

    user_claim: str = "sub"
    """The claim that names the user; a token without it is refused."""

    groups_claim: str = "groups"
    """The claim that lists the user's groups; absent means none."""

    def __post_init__(self) -> None:
        unsafe = [name for name in self.algorithms if name not in SAFE_ALGORITHMS]
        if unsafe or not self.algorithms:
            raise ValueError(
                f"algorithms: {', '.join(unsafe) or 'none given'}; choose from {', '.join(sorted(SAFE_ALGORITHMS))}"
            )


class RestGate:
    """Stands before every REST call."""

    def __init__(self, settings: JwtSettings, *, clock: Clock, on_problem: Callable[[str], None]) -> None:
        self._settings = settings
        self._keys = SigningKeys(settings.keys, algorithms=settings.algorithms, clock=clock, on_problem=on_problem)

    async def authenticate(self, authorization: str | None) -> Identity:
        """Return whom the `Authorization` header names, or raise `Unverified`."""
        token = bearer_token(authorization)
        if token is None:
            raise Unverified("send the header Authorization: Bearer <token>")
        try:
            key = await self._find_key(token)
            return read_claims(_verify(token, key=key, settings=self._settings), settings=self._settings)
        except jwt.PyJWTError as error:
            raise Unverified(_explain(error)) from error
        except KeysUnavailable as error:
            raise Unverified("the server has no signing keys to check it with; try again later") from error

    async def _find_key(self, token: str) -> jwt.PyJWK:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        # Checked before the keys are asked for: a token that can never be right must not cause a read.
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


def read_claims(claims: Mapping[str, object], *, settings: JwtSettings) -> Identity:
    """Return the user and groups that verified claims name."""
    user = claims.get(settings.user_claim)
    if not isinstance(user, str) or not user:
        raise jwt.MissingRequiredClaimError(settings.user_claim)
    groups = claims.get(settings.groups_claim)
    listed = groups if isinstance(groups, list) else []
    return Identity(user=user, groups=tuple(each for each in listed if isinstance(each, str)))


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
    """Say what the client can do about it, in words of ours: the library's may quote the token."""
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"the token lacks the claim {error.claim}"
    return next((text for kind, text in _EXPLANATIONS if isinstance(error, kind)), "the token is malformed")
