"""Send TokenReviews and SubjectAccessReviews to a Kubernetes API server.

One method is one request with one deadline. Nothing is cached or decided here: `maestropy.server.auth` decides what a
review means for a client. `KUBECONFIG` and `~/.kube/config` are not read: the cluster of a shell must not decide who
may publish.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from maestropy.kube import errors
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config import load as config
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.errors import BadConfig, KubeError, ReviewsForbidden, Unreachable
from maestropy.kube.objects import Json
from maestropy.kube.rate_limit import RetryLimits
from maestropy.kube.request import ResourceType
from maestropy.wire import json_types
from maestropy.wire.errors import MalformedMessage

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

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUser:
    """The user of a token, as the API server reports it."""

    user: str
    groups: tuple[str, ...]


class Reviews:
    """TokenReview and SubjectAccessReview over one connection pool."""

    def __init__(self, client: KubeClient, *, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    async def token(self, token: str) -> TokenUser | None:
        """Return the user of `token`, or None if the API server does not accept it."""
        return await self._review(TOKENS, {"token": token}, read=_token_user)

    async def access(self, *, user: str, groups: tuple[str, ...], path: str, verb: str) -> bool:
        """Return whether a user in these groups may use `verb` on the non-resource `path`."""
        attributes = {"path": path, "verb": verb}
        spec = {"user": user, "groups": list(groups), "nonResourceAttributes": attributes}
        return await self._review(ACCESS, spec, read=_is_allowed)

    async def _review(self, review: ResourceType, spec: Json, *, read: Callable[[Json], _Result]) -> _Result:
        review_name = f"{review.plural}.{review.group}"
        manifest = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
        try:
            async with asyncio.timeout(self._deadline):
                return read(await self._client.create(review, manifest))
        except (TimeoutError, errors.Timeout) as error:
            raise Unreachable(
                f"the Kubernetes API server did not answer on {review_name} within {self._deadline:g}s"
            ) from error
        except MalformedMessage as error:
            raise Unreachable(f"what answered for {review_name} is not a Kubernetes API server") from error
        except KubeError as error:
            raise _translate(error, review_name=review_name) from error


def _token_user(response: Json) -> TokenUser | None:
    user = json_types.text_at(response, "status", "user", "username")
    if not user or not json_types.boolean_at(json_types.object_at(response, "status"), "authenticated"):
        return None
    return TokenUser(user=user, groups=tuple(json_types.texts_at(response, "status", "user", "groups")))


def _is_allowed(response: Json) -> bool:
    status = json_types.object_at(response, "status")
    return json_types.boolean_at(status, "allowed") and not json_types.boolean_at(status, "denied")


def _translate(error: KubeError, *, review_name: str) -> KubeError:
    """Return the error with a text for the operator; the message of the API server may quote the token."""
    if isinstance(error, BadConfig):
        return BadConfig(f"{FLAG}: its credentials cannot be used for {review_name}")
    if isinstance(error, errors.Unauthorized | errors.Forbidden):
        return ReviewsForbidden(
            f"the Kubernetes API server rejects this server's {review_name} request with HTTP {error.status}; "
            f"its account needs the verb create on {review_name}"
        )
    if isinstance(error, errors.ApiError):
        return Unreachable(f"the Kubernetes API server answered on {review_name} with HTTP {error.status}")
    if error.status:
        return Unreachable(f"what answered for {review_name} is not a Kubernetes API server")
    return Unreachable(f"the Kubernetes API server cannot be reached for {review_name}; check the network and {FLAG}")


def locate(kubeconfig: str, *, environ: Mapping[str, str]) -> ClusterAddress:
    """Return the API server for reviews: that of the kubeconfig, or of the pod if none is named."""
    try:
        if kubeconfig:
            return config.from_kubeconfig([Path(kubeconfig)])
        return config.from_service_account(environ)
    except BadConfig as error:
        raise BadConfig(f"{FLAG}: {error}") from error


@asynccontextmanager
async def connect(kubeconfig: str, *, deadline: float = 5.0) -> AsyncIterator[Reviews]:
    """Open reviews through a kubeconfig file, or through the pod's service account when it is empty.

    The deadline in seconds covers one review: a client waits for it with an open call.
    """
    # No rate limit here: every review belongs to a call of a client, and those are limited.
    settings = ClientSettings(user_agent="maestro", qps=0, timeout=deadline, retries=RetryLimits(attempts=1))
    async with KubeClient(locate(kubeconfig, environ=os.environ), settings=settings) as client:
        yield Reviews(client, deadline=deadline)
