"""Ask a Kubernetes API server who a token belongs to and what a user may do.

One method is one request with one deadline. It neither caches nor decides: no answer is an error,
and what a refusal means to a client is decided by `maestropy.server.auth`.

`KUBECONFIG` and `~/.kube/config` are not consulted: who may publish is not decided by whichever cluster a shell
happened to point at.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from maestropy.kube import config, errors
from maestropy.kube.address import ClusterAddress
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.errors import BadConfig, KubeError, Refused, Unreachable
from maestropy.kube.limits import Patience
from maestropy.kube.objects import Json
from maestropy.kube.request import ResourceType
from maestropy.wire import jsontypes
from maestropy.wire.errors import Malformed

FLAG = "--grpc-authorizer-config"

TOKENS = ResourceType(
    group="authentication.k8s.io", version="v1", plural="tokenreviews", kind="TokenReview", namespaced=False
)
ACCESS = ResourceType(
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    kind="SubjectAccessReview",
    namespaced=False,
)

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """Whom the API server says a token belongs to."""

    user: str
    groups: tuple[str, ...]


class Reviews:
    """The two reviews, over one connection pool."""

    def __init__(self, client: KubeClient, *, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    async def token(self, token: str) -> TokenHolder | None:
        """Return whom `token` belongs to, or None when the API server does not accept it."""
        return await self._ask(TOKENS, {"token": token}, read=_holder)

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool:
        """Return whether a user in these groups may use `verb` on the non-resource `path`."""
        attributes = {"path": path, "verb": verb}
        spec = {"user": user, "groups": list(groups), "nonResourceAttributes": attributes}
        return await self._ask(ACCESS, spec, read=_is_allowed)

    async def _ask(self, review: ResourceType, spec: Json, *, read: Callable[[Json], _Answer]) -> _Answer:
        what = f"{review.plural}.{review.group}"
        manifest = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
        try:
            async with asyncio.timeout(self._deadline):
                return read(await self._client.create(review, manifest))
        except (TimeoutError, errors.Timeout) as error:
            raise Unreachable(
                f"the Kubernetes API server did not answer on {what} within {self._deadline:g}s"
            ) from error
        except Malformed as error:
            raise Unreachable(f"what answered for {what} is not a Kubernetes API server") from error
        except KubeError as error:
            raise _translate(error, what=what) from error


def _holder(answer: Json) -> TokenHolder | None:
    user = jsontypes.text_at(answer, "status", "user", "username")
    if not user or not jsontypes.boolean_at(jsontypes.object_at(answer, "status"), "authenticated"):
        return None
    return TokenHolder(user=user, groups=tuple(jsontypes.texts_at(answer, "status", "user", "groups")))


def _is_allowed(answer: Json) -> bool:
    status = jsontypes.object_at(answer, "status")
    return jsontypes.boolean_at(status, "allowed") and not jsontypes.boolean_at(status, "denied")


def _translate(error: KubeError, *, what: str) -> KubeError:
    """Return the error as the server's operator should read it; the API server's own words may quote the token."""
    if isinstance(error, BadConfig):
        return BadConfig(f"{FLAG}: its credentials cannot be used for {what}")
    if isinstance(error, errors.Unauthorized | errors.Forbidden):
        return Refused(
            f"the Kubernetes API server refuses this server's {what} request with HTTP {error.status}; "
            f"its account needs the verb create on {what}"
        )
    if isinstance(error, errors.ApiError):
        return Unreachable(f"the Kubernetes API server answered on {what} with HTTP {error.status}")
    if error.status:
        return Unreachable(f"what answered for {what} is not a Kubernetes API server")
    return Unreachable(f"the Kubernetes API server cannot be reached for {what}; check the network and {FLAG}")


def locate(kubeconfig: str, *, environ: Mapping[str, str]) -> ClusterAddress:
    """Return the API server that answers reviews: the kubeconfig's, or the pod's own when none is named."""
    try:
        if kubeconfig:
            return config.from_kubeconfig([Path(kubeconfig)])
        return config.from_service_account(environ)
    except BadConfig as error:
        raise BadConfig(f"{FLAG}: {error}") from error


@asynccontextmanager
async def connect(kubeconfig: str, *, deadline: float = 5.0) -> AsyncIterator[Reviews]:
    """Open reviews through a kubeconfig file, or through the pod's service account when it is empty.

    The deadline (seconds) covers one review as a whole: a client waits for it with its call open.
    """
    # Every call of ours is some client's call, so whoever limits those limits these.
    settings = ClientSettings(user_agent="maestro", qps=0, timeout=deadline, patience=Patience(attempts=1))
    async with KubeClient(locate(kubeconfig, environ=os.environ), settings=settings) as client:
        yield Reviews(client, deadline=deadline)
