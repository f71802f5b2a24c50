"""Decide who a source client is, and whether it may publish or subscribe for a source.

Three ways to know a client (`mock`, `mtls`, `token`) and one way to ask what it may do: a Kubernetes
access review of `/sources/<source>`. Without TLS there is neither, as in the Go server; whoever
starts the server says so. No answer from Kubernetes is never a yes.
"""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Final, Literal, Protocol

from maestropy.kube.errors import KubeError
from maestropy.server.auth.denied import Code, Denied
from maestropy.server.auth.remembered import Clock, Remembered
from maestropy.transport.identity import ANONYMOUS, Identity, Peer, Unidentified, bearer_token, identify

Verb = Literal["pub", "sub"]

MOCK_IDENTITY: Final = Identity(user="mock", groups=("mock-group",))


class Mode(Enum):
    """How source clients are known; the values, but for OPEN, are those of `--grpc-authn-type`."""

    OPEN = "open"
    MOCK = "mock"
    MTLS = "mtls"
    TOKEN = "token"  # noqa: S105  the name of a mode, not a password

    @property
    def asks_kubernetes(self) -> bool:
        """Whether somebody has to grant access."""
        return self in (Mode.MTLS, Mode.TOKEN)


class BadMode(Exception):
    """The authentication flags do not fit together; the text names the flag and the remedy."""


def choose_mode(authn_type: str, *, tls: bool, client_ca: bool) -> Mode:
    """Return the mode the flags mean; without TLS nobody is asked anything, whatever the type says."""
    try:
        mode = Mode(authn_type)
    except ValueError:
        mode = Mode.OPEN
    if mode is Mode.OPEN:
        raise BadMode(f"--grpc-authn-type is {authn_type!r}; give one of mock, mtls, token")
    if not tls:
        return Mode.OPEN
    if mode is Mode.MTLS and not client_ca:
        raise BadMode("--grpc-authn-type=mtls needs --grpc-client-ca-file: the CA that signs client certificates")
    return mode


class Holder(Protocol):
    """Whom a token belongs to."""

    @property
    def user(self) -> str: ...

    @property
    def groups(self) -> tuple[str, ...]: ...


class Reviews(Protocol):
    """The questions only Kubernetes can answer; both raise `KubeError` when it does not."""

    async def token(self, token: str) -> Holder | None: ...

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool: ...


class SourceGate:
    """Stands before every call of a source client."""

    def __init__(self, mode: Mode, *, reviews: Reviews | None, clock: Clock) -> None:
        if mode.asks_kubernetes and reviews is None:
            raise BadMode(f"--grpc-authn-type={mode.value} needs Kubernetes; set --grpc-authorizer-config")
        self._mode = mode
        self._reviews = reviews
        self._tokens: Remembered[Identity | Literal[False]] = Remembered(clock=clock)
        self._access: Remembered[bool] = Remembered(clock=clock)

    async def authenticate(self, peer: Peer) -> Identity:
        """Return who the peer is, or raise `Denied`."""
        match self._mode:
            case Mode.OPEN:
                return ANONYMOUS
            case Mode.MOCK:
                return MOCK_IDENTITY
            case Mode.MTLS:
                try:
                    return identify(peer)
                except Unidentified as error:
                    raise Denied(Code.UNAUTHENTICATED, str(error)) from error
            case Mode.TOKEN:
                return await self._review_token(_read_token(peer))

    async def authorize(self, identity: Identity, *, source: str, verb: Verb) -> None:
        """Return when the identity may publish (`pub`) or subscribe (`sub`) for `source`, or raise `Denied`."""
        if not self._mode.asks_kubernetes:
            return
        if not source:
            raise Denied(Code.INVALID_ARGUMENT, "failed to authorize the request: resource cannot be empty")
        if not await self._review_access(identity, source=source, verb=verb):
            action = "publish" if verb == "pub" else "subscribe"
            raise Denied(Code.PERMISSION_DENIED, f"unauthorized to {action} the event from source {source}")

    async def _review_token(self, token: str) -> Identity:
        reviews = self._reviews
        assert reviews is not None  # __init__ refuses the mode otherwise

        async def ask() -> Identity | Literal[False]:
            holder = await reviews.token(token)
            return Identity(user=holder.user, groups=holder.groups) if holder else False

        # The digest stands for the token, so that no memory dump of the cache gives one away.
        key = hashlib.sha256(token.encode()).digest()
        try:
            verdict = await self._tokens.get(key, ask)
        except KubeError as error:
            raise Denied(Code.UNAVAILABLE, f"failed to review the token: {error}") from error
        if not verdict:
            raise Denied(Code.UNAUTHENTICATED, "token not authenticated")
        return verdict

    async def _review_access(self, identity: Identity, *, source: str, verb: Verb) -> bool:
        reviews = self._reviews
        assert reviews is not None  # __init__ refuses the mode otherwise
        path = f"/sources/{source}"
        try:
            return await self._access.get(
                (identity, path, verb),
                lambda: reviews.access(user=identity.user, groups=identity.groups, path=path, verb=verb),
            )
        except KubeError as error:
            raise Denied(Code.UNAVAILABLE, f"failed to authorize the request: {error}") from error


def _read_token(peer: Peer) -> str:
    bare = (peer.authorization or "").strip()
    # The Go server strips "Bearer " where present and takes any other value as the token itself.
    token = bearer_token(peer.authorization) or (bare if " " not in bare and bare.lower() != "bearer" else "")
    if not token:
        raise Denied(Code.UNAUTHENTICATED, "invalid token")
    return token


@asynccontextmanager
async def open_gate(mode: Mode, *, kubeconfig: str, clock: Clock) -> AsyncIterator[SourceGate]:
    """Open the gate, and with it the connection to Kubernetes where the mode needs one."""
    if not mode.asks_kubernetes:
        yield SourceGate(mode, reviews=None, clock=clock)
        return
    # Imported only here: the Kubernetes client doubles the start-up of a server that never asks it.
    from maestropy.kube.reviews import connect  # noqa: PLC0415  the reason is the line above

    async with connect(kubeconfig) as reviews:
        yield SourceGate(mode, reviews=reviews, clock=clock)
