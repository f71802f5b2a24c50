"""Ask a Kubernetes API server who a token belongs to and what a user may do.

One method is one request with one deadline. It neither caches nor decides: no answer is an error,
and what a refusal means to a client is decided by `pymaestro.server.auth`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import httpx2
import msgspec
from lightkube import AsyncClient
from lightkube.core.exceptions import ConfigError
from lightkube.models import authentication_v1 as authentication
from lightkube.models import authorization_v1 as authorization
from lightkube.resources.authentication_v1 import TokenReview
from lightkube.resources.authorization_v1 import SubjectAccessReview

from pymaestro.kube import config
from pymaestro.kube.errors import BadConfig, KubeError, Refused, Unreachable

TOKENS = "tokenreviews.authentication.k8s.io"
ACCESS = "subjectaccessreviews.authorization.k8s.io"

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """Whom the API server says a token belongs to."""

    user: str
    groups: tuple[str, ...]


class Reviews:
    """The two reviews, over one connection pool."""

    def __init__(self, client: AsyncClient, *, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    async def token(self, token: str) -> TokenHolder | None:
        """Return whom `token` belongs to, or None when the API server does not accept it."""
        review = TokenReview(spec=authentication.TokenReviewSpec(token=token))
        status = (await self._ask(self._client.create(review), what=TOKENS)).status
        if status is None or status.authenticated is not True or not (status.user and status.user.username):
            return None
        return TokenHolder(user=status.user.username, groups=tuple(status.user.groups or ()))

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool:
        """Return whether a user in these groups may use `verb` on the non-resource `path`."""
        attributes = authorization.NonResourceAttributes(path=path, verb=verb)
        review = SubjectAccessReview(
            spec=authorization.SubjectAccessReviewSpec(user=user, groups=list(groups), nonResourceAttributes=attributes)
        )
        status = (await self._ask(self._client.create(review), what=ACCESS)).status
        return status is not None and status.allowed is True and status.denied is not True

    async def _ask(self, request: Awaitable[_Answer], *, what: str) -> _Answer:
        try:
            async with asyncio.timeout(self._deadline):
                return await request
        except TimeoutError as error:
            raise Unreachable(
                f"the Kubernetes API server did not answer on {what} within {self._deadline:g}s"
            ) from error
        except httpx2.HTTPStatusError as error:
            raise _translate(error.response.status_code, what=what) from error
        except httpx2.HTTPError as error:
            raise Unreachable(
                f"the Kubernetes API server cannot be reached for {what}; check the network and {config.FLAG}"
            ) from error
        except ConfigError as error:
            raise BadConfig(f"{config.FLAG}: its credentials cannot be used for {what}") from error
        # Some proxy's error page: without a content type or JSON lightkube fails on the header or on parsing.
        except (KeyError, ValueError, msgspec.MsgspecError) as error:
            raise Unreachable(f"what answered for {what} is not a Kubernetes API server") from error


def _translate(status: int, *, what: str) -> KubeError:
    if status in (401, 403):
        return Refused(
            f"the Kubernetes API server refuses this server's {what} request with HTTP {status}; "
            f"its account needs the verb create on {what}"
        )
    return Unreachable(f"the Kubernetes API server answered on {what} with HTTP {status}")


@asynccontextmanager
async def connect(kubeconfig: str, *, deadline: float = 5.0) -> AsyncIterator[Reviews]:
    """Open reviews through a kubeconfig file, or through the pod's service account when it is empty.

    The deadline (seconds) covers one review as a whole: a client waits for it with its call open.
    """
    client = AsyncClient(config.load(kubeconfig))
    try:
        yield Reviews(client, deadline=deadline)
    finally:
        await client.close()
