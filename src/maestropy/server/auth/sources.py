"""Authenticate source clients, and authorize them to publish or subscribe for a source.

A client is authenticated by `mock`, `mtls` or `token`, and authorized by a Kubernetes SubjectAccessReview of
`/sources/<source>`. Without TLS there is neither, as in the Go server; `main` logs a warning then. Without a response
of Kubernetes access is denied.

The token reviews that clients without a valid token can cause are limited for each client address.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final, Literal, Protocol

from maestropy.kube.errors import KubeError
from maestropy.server.auth.denied import Denied, DeniedCode
from maestropy.server.auth.review_cache import Clock, VerdictCache
from maestropy.transport.peer_identity import ANONYMOUS, Peer, PeerIdentity, Unidentified, bearer_token, identify
from maestropy.transport.token_attempts import TokenAttempts, digest

Verb = Literal["pub", "sub"]

MOCK_IDENTITY: Final = PeerIdentity(user="mock", groups=("mock-group",))

_TOO_MANY: Final = "too many tokens from this address are not valid; try again later"


class AuthnMode(Enum):
    """How source clients are authenticated; the values except OPEN are those of `--grpc-authn-type`."""

    OPEN = "open"
    MOCK = "mock"
    MTLS = "mtls"
    TOKEN = "token"  # noqa: S105  the name of a mode, not a password

    @property
    def needs_kubernetes(self) -> bool:
        """Whether Kubernetes reviews the access."""
        return self in (AuthnMode.MTLS, AuthnMode.TOKEN)


class InvalidAuthnMode(Exception):
    """The authentication flags do not fit together; the text names the flag and the remedy."""


def choose_mode(authn_type: str, *, tls: bool, client_ca: bool) -> AuthnMode:
    """Return the mode of the flags; without TLS clients are not authenticated, whatever the type is."""
    try:
        mode = AuthnMode(authn_type)
    except ValueError:
        mode = AuthnMode.OPEN
    if mode is AuthnMode.OPEN:
        raise InvalidAuthnMode(f"--grpc-authn-type is {authn_type!r}; give one of mock, mtls, token")
    if not tls:
        return AuthnMode.OPEN
    if mode is AuthnMode.MTLS and not client_ca:
        raise InvalidAuthnMode(
            "--grpc-authn-type=mtls needs --grpc-client-ca-file: the CA that signs client certificates"
        )
    return mode


class TokenUserInfo(Protocol):
    """The user of a token."""

    @property
    def user(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...


class ReviewApi(Protocol):
    """Reviews by Kubernetes; both raise `KubeError` without a response."""

    async def token(self, token: str) -> TokenUserInfo | None: ...

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool: ...


class SourceAccessControl:
    """Authenticates and authorizes every call of a source client."""

    def __init__(
        self,
        mode: AuthnMode,
        *,
        reviews: ReviewApi | None,
        clock: Clock,
        on_limited: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_limited` is called for every token that is rejected without a review."""
        if mode.needs_kubernetes and reviews is None:
            raise InvalidAuthnMode(f"--grpc-authn-type={mode.value} needs Kubernetes; set --grpc-authorizer-config")
        self._mode = mode
        self._reviews = reviews
        self._tokens: VerdictCache[PeerIdentity | Literal[False]] = VerdictCache(clock=clock)
        self._access: VerdictCache[bool] = VerdictCache(clock=clock)
        self._attempts = TokenAttempts(clock=clock)
        self._on_limited = on_limited

    async def authenticate(self, peer: Peer) -> PeerIdentity:
        """Return the identity of the peer; raises `Denied`."""
        match self._mode:
            case AuthnMode.OPEN:
                return ANONYMOUS
            case AuthnMode.MOCK:
                return MOCK_IDENTITY
            case AuthnMode.MTLS:
                try:
                    return identify(peer)
                except Unidentified as error:
                    raise Denied(DeniedCode.UNAUTHENTICATED, str(error)) from error
            case AuthnMode.TOKEN:
                return await self._review_token(_read_token(peer), address=peer.address)

    async def authorize(self, identity: PeerIdentity, *, source: str, verb: Verb) -> None:
        """Return if the identity may publish (`pub`) or subscribe (`sub`) for `source`; raises `Denied`."""
        if not self._mode.needs_kubernetes:
            return
        if not source:
            raise Denied(DeniedCode.INVALID_ARGUMENT, "failed to authorize the request: resource cannot be empty")
        if not await self._review_access(identity, source=source, verb=verb):
            action = "publish" if verb == "pub" else "subscribe"
            raise Denied(DeniedCode.PERMISSION_DENIED, f"unauthorized to {action} the event from source {source}")

    async def _review_token(self, token: str, *, address: str) -> PeerIdentity:
        reviews = self._reviews
        assert reviews is not None  # __init__ rejects the mode otherwise
        key = digest(token)

        async def review() -> PeerIdentity | Literal[False]:
            if not self._attempts.may_start(key, address=address):
                self._on_limited()
                raise Denied(DeniedCode.RESOURCE_EXHAUSTED, _TOO_MANY)
            try:
                user = await reviews.token(token)
            except KubeError:
                self._attempts.unanswered(key, address=address)
                raise
            if user is None:
                self._attempts.rejected(key)
                return False
            self._attempts.accepted(key, address=address)
            return PeerIdentity(user=user.user, groups=user.groups)

        try:
            verdict = await self._tokens.get(key, review)
        except KubeError as error:
            raise Denied(DeniedCode.UNAVAILABLE, f"failed to review the token: {error}") from error
        if not verdict:
            raise Denied(DeniedCode.UNAUTHENTICATED, "token not authenticated")
        return verdict

    async def _review_access(self, identity: PeerIdentity, *, source: str, verb: Verb) -> bool:
        reviews = self._reviews
        assert reviews is not None  # __init__ rejects the mode otherwise
        path = f"/sources/{source}"
        try:
            return await self._access.get(
                (identity, path, verb),
                lambda: reviews.access(user=identity.user, groups=identity.groups, path=path, verb=verb),
            )
        except KubeError as error:
            raise Denied(DeniedCode.UNAVAILABLE, f"failed to authorize the request: {error}") from error


def _read_token(peer: Peer) -> str:
    bare = (peer.authorization or "").strip()
    # The Go server strips "Bearer " if present and accepts any other value as the token.
    token = bearer_token(peer.authorization) or (bare if " " not in bare and bare.lower() != "bearer" else "")
    if not token:
        raise Denied(DeniedCode.UNAUTHENTICATED, "invalid token")
    return token


@asynccontextmanager
async def open_access_control(
    mode: AuthnMode, *, kubeconfig: str, clock: Clock, on_limited: Callable[[], None] = lambda: None
) -> AsyncIterator[SourceAccessControl]:
    """Open the access control, and the connection to Kubernetes if the mode needs one."""
    if not mode.needs_kubernetes:
        yield SourceAccessControl(mode, reviews=None, clock=clock)
        return
    # Imported here: the Kubernetes client doubles the start-up time, and most servers do not need it.
    from maestropy.kube.reviews import connect  # noqa: PLC0415  the reason is the line above

    async with connect(kubeconfig) as reviews:
        yield SourceAccessControl(mode, reviews=reviews, clock=clock, on_limited=on_limited)
