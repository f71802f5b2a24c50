"""TokenReviews and SubjectAccessReviews over real HTTP."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from maestropy.kube import reviews as module
from maestropy.kube.errors import BadConfig, KubeError, ReviewsForbidden, Unreachable
from maestropy.kube.reviews import Reviews, TokenUser, connect
from tests.review_api import ACCESS, TOKENS, ReviewApi, status_body

Scenario = Callable[[ReviewApi, Reviews], Awaitable[None]]


@contextlib.asynccontextmanager
async def opened(tmp_path: Path, *, deadline: float = 5.0) -> AsyncIterator[tuple[ReviewApi, Reviews]]:
    async with (
        ReviewApi(
            tokens={"good": ("alice", ["devs", "system:authenticated"])},
            grants={("alice", "/sources/policy", "pub")},
        ) as api,
        connect(api.write_kubeconfig(tmp_path, user={"token": "ours"}), deadline=deadline) as reviews,
    ):
        yield api, reviews


async def test_token_review(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, reviews):
        user = TokenUser(user="alice", groups=("devs", "system:authenticated"))
        assert await reviews.token("good") == user
        assert await reviews.token("bad") is None
        assert api.requests == {TOKENS: 2}
        assert api.bodies[0] == {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "good"},
        }
        assert api.credentials == {"Bearer ours"}


async def test_access_review(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, reviews):
        identity: Any = {"user": "alice", "groups": ("devs",)}
        assert await reviews.access(**identity, path="/sources/policy", verb="pub") is True
        assert await reviews.access(**identity, path="/sources/policy", verb="sub") is False
        assert api.requests == {ACCESS: 2}
        assert api.bodies[0] == {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": "alice",
                "groups": ["devs"],
                "nonResourceAttributes": {"path": "/sources/policy", "verb": "pub"},
            },
        }


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("null", id="no-status"),
        pytest.param("{}", id="empty-status"),
        pytest.param('{"authenticated": true}', id="no-user"),
        pytest.param('{"authenticated": true, "user": {}}', id="no-username"),
        pytest.param('{"authenticated": false, "user": {"username": "a"}}', id="not-authenticated"),
    ],
)
async def test_unclear_token_review_is_not_authenticated(tmp_path: Path, status: str) -> None:
    async with opened(tmp_path) as (api, reviews):
        api.answer_with = (201, "application/json", f'{{"spec": {{"token": "good"}}, "status": {status}}}')
        assert await reviews.token("good") is None


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("null", id="no-status"),
        pytest.param('{"allowed": true, "denied": true}', id="allowed-and-denied"),
        pytest.param('{"allowed": false, "evaluationError": "no such role"}', id="could-not-evaluate"),
    ],
)
async def test_unclear_access_review_is_not_allowed(tmp_path: Path, status: str) -> None:
    async with opened(tmp_path) as (api, reviews):
        api.answer_with = (201, "application/json", f'{{"spec": {{"user": "a"}}, "status": {status}}}')
        assert await reviews.access(user="a", groups=(), path="/sources/s", verb="pub") is False


@pytest.mark.parametrize(
    ("response", "error", "message"),
    [
        pytest.param(
            status_body(403, "Forbidden"), ReviewsForbidden, "needs the verb create on tokenreviews", id="forbidden"
        ),
        pytest.param(status_body(401, "Unauthorized"), ReviewsForbidden, "HTTP 401", id="our-token-expired"),
        pytest.param(status_body(500, "InternalError"), Unreachable, "HTTP 500", id="internal-error"),
        pytest.param(status_body(429, "TooManyRequests"), Unreachable, "HTTP 429", id="throttled"),
        pytest.param((503, "text/html", "<p>busy</p>"), Unreachable, "HTTP 503", id="proxy-page"),
        pytest.param((502, "", ""), Unreachable, "HTTP 502", id="bare-gateway"),
        pytest.param((200, "text/html", "<p>hi</p>"), Unreachable, "not a Kubernetes API", id="web-page"),
        pytest.param((503, "application/json", "{"), Unreachable, "HTTP 503", id="truncated-error"),
        pytest.param((201, "application/json", "{"), Unreachable, "not a Kubernetes API", id="truncated-success"),
        pytest.param((302, "text/html", "elsewhere"), Unreachable, "HTTP 302", id="redirect-is-not-followed"),
        pytest.param(
            (201, "application/json", '{"status": {"authenticated": true, "user": 7}}'),
            Unreachable,
            "not a Kubernetes API",
            id="wrong-types",
        ),
        pytest.param((200, "application/json", "[]"), Unreachable, "not a Kubernetes API", id="a-list"),
    ],
)
async def test_invalid_response_is_an_error(
    tmp_path: Path, response: tuple[int, str, str], error: type[KubeError], message: str
) -> None:
    async with opened(tmp_path) as (api, reviews):
        api.answer_with = response
        with pytest.raises(error, match=message) as caught:
            await reviews.token("good")
        assert "good" not in str(caught.value)


async def test_unreachable_server(tmp_path: Path) -> None:
    async with opened(tmp_path) as (api, reviews):
        await api.stop()
        with pytest.raises(Unreachable, match="cannot be reached"):
            await reviews.token("good")


async def test_deadline(tmp_path: Path) -> None:
    async with opened(tmp_path, deadline=0.05) as (api, reviews):
        api.may_answer.clear()
        with pytest.raises(Unreachable, match=r"within 0\.05s"):
            await reviews.access(user="a", groups=(), path="/sources/s", verb="sub")


async def test_context_without_user_sends_no_credentials(tmp_path: Path) -> None:
    async with ReviewApi() as api, connect(api.write_kubeconfig(tmp_path)) as reviews:
        assert await reviews.token("bad") is None
        assert api.credentials == {""}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("a: [s3cret", "is not a kubeconfig", id="not-yaml"),
        pytest.param("clusters: []\ncontexts: []", "current-context is not set", id="no-context"),
    ],
)
def test_unusable_kubeconfig_is_rejected_at_start(tmp_path: Path, content: str | None, message: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadConfig, match=f"^--grpc-authorizer-config.*{message}") as caught:
        module.locate(str(path), environ={})
    assert "s3cret" not in str(caught.value)


def test_outside_a_pod_a_kubeconfig_must_be_named() -> None:
    with pytest.raises(BadConfig, match="name a kubeconfig file"):
        module.locate("", environ={"KUBECONFIG": "/etc/hosts"})
