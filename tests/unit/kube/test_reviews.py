"""Reviews over real HTTP: what is sent, what an answer means, and every way to get none."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from review_api import ACCESS, TOKENS, ReviewApi, status_body

from maestropy.kube import reviews as module
from maestropy.kube.errors import BadConfig, KubeError, Refused, Unreachable
from maestropy.kube.reviews import Reviews, TokenHolder, connect

Scenario = Callable[[ReviewApi, Reviews], Awaitable[None]]


def run(tmp_path: Path, scenario: Scenario, *, deadline: float = 5.0) -> None:
    async def main() -> None:
        async with (
            ReviewApi(
                tokens={"good": ("alice", ["devs", "system:authenticated"])},
                grants={("alice", "/sources/policy", "pub")},
            ) as api,
            connect(api.write_kubeconfig(tmp_path, user={"token": "ours"}), deadline=deadline) as reviews,
        ):
            await scenario(api, reviews)

    asyncio.run(main())


def test_token_review(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        holder = TokenHolder(user="alice", groups=("devs", "system:authenticated"))
        assert await reviews.token("good") == holder
        assert await reviews.token("bad") is None
        assert api.requests == {TOKENS: 2}
        assert api.bodies[0] == {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": "good"},
        }
        assert api.credentials == {"Bearer ours"}

    run(tmp_path, scenario)


def test_access_review(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        who = {"user": "alice", "groups": ("devs",)}
        assert await reviews.access(**who, path="/sources/policy", verb="pub") is True
        assert await reviews.access(**who, path="/sources/policy", verb="sub") is False
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

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("null", id="no-status"),
        pytest.param("{}", id="empty-status"),
        pytest.param('{"authenticated": true}', id="nobody"),
        pytest.param('{"authenticated": true, "user": {}}', id="nameless"),
        pytest.param('{"authenticated": false, "user": {"username": "a"}}', id="refused"),
    ],
)
def test_unclear_token_review_is_a_no(tmp_path: Path, status: str) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        api.answer_with = (201, "application/json", f'{{"spec": {{"token": "good"}}, "status": {status}}}')
        assert await reviews.token("good") is None

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param("null", id="no-status"),
        pytest.param('{"allowed": true, "denied": true}', id="allowed-and-denied"),
        pytest.param('{"allowed": false, "evaluationError": "no such role"}', id="could-not-evaluate"),
    ],
)
def test_unclear_access_review_is_a_no(tmp_path: Path, status: str) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        api.answer_with = (201, "application/json", f'{{"spec": {{"user": "a"}}, "status": {status}}}')
        assert await reviews.access(user="a", groups=(), path="/sources/s", verb="pub") is False

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        pytest.param(status_body(403, "Forbidden"), Refused, "needs the verb create on tokenreviews", id="forbidden"),
        pytest.param(status_body(401, "Unauthorized"), Refused, "HTTP 401", id="our-token-expired"),
        pytest.param(status_body(500, "InternalError"), Unreachable, "HTTP 500", id="internal-error"),
        pytest.param(status_body(429, "TooManyRequests"), Unreachable, "HTTP 429", id="throttled"),
        pytest.param((503, "text/html", "<p>busy</p>"), Unreachable, "HTTP 503", id="proxy-page"),
        pytest.param((502, "", ""), Unreachable, "HTTP 502", id="bare-gateway"),
        pytest.param((200, "text/html", "<p>hi</p>"), Unreachable, "not a Kubernetes API", id="web-page"),
        pytest.param((503, "application/json", "{"), Unreachable, "HTTP 503", id="torn"),
        pytest.param((201, "application/json", "{"), Unreachable, "not a Kubernetes API", id="torn-success"),
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
def test_no_answer_is_an_error(
    tmp_path: Path, answer: tuple[int, str, str], error: type[KubeError], words: str
) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        api.answer_with = answer
        with pytest.raises(error, match=words) as caught:
            await reviews.token("good")
        assert "good" not in str(caught.value)

    run(tmp_path, scenario)


def test_server_gone(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        await api.stop()
        with pytest.raises(Unreachable, match="cannot be reached"):
            await reviews.token("good")

    run(tmp_path, scenario)


def test_deadline(tmp_path: Path) -> None:
    async def scenario(api: ReviewApi, reviews: Reviews) -> None:
        api.may_answer.clear()
        with pytest.raises(Unreachable, match=r"within 0\.05s"):
            await reviews.access(user="a", groups=(), path="/sources/s", verb="sub")

    run(tmp_path, scenario, deadline=0.05)


def test_context_without_user_asks_without_credentials(tmp_path: Path) -> None:
    async def main() -> None:
        async with ReviewApi() as api, connect(api.write_kubeconfig(tmp_path)) as reviews:
            assert await reviews.token("bad") is None
            assert api.credentials == {""}

    asyncio.run(main())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "No such file", id="missing"),
        pytest.param("a: [s3cret", "is not a kubeconfig", id="not-yaml"),
        pytest.param("clusters: []\ncontexts: []", "current-context is not set", id="no-context"),
    ],
)
def test_unusable_kubeconfig_is_refused_at_start(tmp_path: Path, content: str | None, words: str) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadConfig, match=f"^--grpc-authorizer-config.*{words}") as caught:
        module.locate(str(path), environ={})
    assert "s3cret" not in str(caught.value)


def test_outside_a_pod_a_kubeconfig_must_be_named() -> None:
    with pytest.raises(BadConfig, match="name a kubeconfig file"):
        module.locate("", environ={"KUBECONFIG": "/etc/hosts"})
