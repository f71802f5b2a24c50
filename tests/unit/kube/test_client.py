"""The Kubernetes client over real HTTP: requests, errors of responses, and retries."""

import asyncio
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest

from maestropy.kube import errors, request
from maestropy.kube.client import ClientSettings, KubeClient
from maestropy.kube.config.address import ClusterAddress, Credentials, ExecPlugin, Pem
from maestropy.kube.request import DeleteOptions, ObjectSelector, Patch, ResourceType, WriteOptions
from tests.certificates import make_ca
from tests.scripted_api import Answer, Asked, Script, ScriptedApi, fails, says

PODS = ResourceType(group="", version="v1", plural="pods", kind="Pod", namespaced=True)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "p"}}


def always(response: Answer) -> Script:
    async def script(_: Asked) -> Answer:
        return response

    return script


async def first_error(client: KubeClient) -> errors.KubeError:
    with pytest.raises(errors.KubeError) as caught:
        await client.get(PODS, "p", namespace="ns")
    return caught.value


async def test_every_verb() -> None:
    async with (
        ScriptedApi(always(says(POD))) as api,
        KubeClient(api.address(Credentials(token="t0ken"), prefix="/k8s/c1")) as client,
    ):
        assert await client.get(PODS, "p", namespace="ns") == POD
        await client.create(PODS, POD)
        await client.update(PODS, POD, write=WriteOptions(subresource="status"))
        await client.patch(PODS, "p", namespace="ns", change=Patch(body={"metadata": {"labels": {"a": "b"}}}))
        await client.apply(PODS, POD, write=WriteOptions(field_manager="work-agent", force=True))
        await client.delete(PODS, "p", namespace="ns", deletion=DeleteOptions(uid="u"))
    home = "/k8s/c1/api/v1/namespaces/ns/pods"
    assert [f"{received.method} {received.target}" for received in api.asked] == [
        f"GET {home}/p",
        f"POST {home}",
        f"PUT {home}/p/status",
        f"PATCH {home}/p",
        f"PATCH {home}/p?fieldManager=work-agent&force=true",
        f"DELETE {home}/p",
    ]
    assert {received.header("authorization") for received in api.asked} == {"Bearer t0ken"}
    assert {received.header("user-agent") for received in api.asked} == {"work-agent"}
    assert {received.header("accept") for received in api.asked} == {"application/json"}
    assert api.asked[5].json()["preconditions"] == {"uid": "u"}
    assert api.asked[1].json() == POD


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        pytest.param(Credentials(), "", id="anonymous"),
        pytest.param(Credentials(username="u", password="p"), "Basic dTpw", id="basic"),
    ],
)
async def test_other_credentials(credentials: Credentials, header: str) -> None:
    async with ScriptedApi(always(says(POD))) as api, KubeClient(api.address(credentials)) as client:
        await client.get(PODS, "p", namespace="ns")
    assert api.asked[0].header("authorization") == header


async def test_impersonation_of_a_request_replaces_the_configured_one() -> None:
    configured = Credentials(impersonation=(("Impersonate-User", "boss"),))
    async with ScriptedApi(always(says(POD))) as api, KubeClient(api.address(configured)) as client:
        await client.create(PODS, POD)
        await client.create(
            PODS, POD, write=WriteOptions(impersonate=request.Impersonation(user="sa", groups=("g", "h")))
        )
    first, second = (
        [pair for pair in received.headers if pair[0].lower().startswith("impersonate")] for received in api.asked
    )
    assert first == [("Impersonate-User", "boss")]
    assert second == [("Impersonate-User", "sa"), ("Impersonate-Group", "g"), ("Impersonate-Group", "h")]


@pytest.mark.parametrize(
    ("response", "family", "message"),
    [
        pytest.param(
            fails(404, "NotFound", 'pods "p" not found'), errors.NotFound, '^pods "p" not found$', id="not-found"
        ),
        pytest.param(fails(409, "Conflict"), errors.Conflict, "said the server", id="conflict"),
        pytest.param(
            Answer(502, b"<p>s3cret page</p>"), errors.ServerError, "^HTTP 502 without a Kubernetes Status$", id="proxy"
        ),
        pytest.param(Answer(503, b"{"), errors.Unavailable, "HTTP 503", id="torn-status"),
        pytest.param(says([1], status=500), errors.ServerError, "HTTP 500", id="no-status"),
        pytest.param(Answer(302, b"", {"Location": "/"}), errors.ApiError, "HTTP 302", id="redirect"),
        pytest.param(Answer(200, b"<p>s3cret</p>"), errors.Unreachable, "is not a Kubernetes API server", id="page"),
        pytest.param(Answer(200, b"[]"), errors.Unreachable, "is not a Kubernetes API server", id="list"),
        pytest.param(Answer(200, b'{"a":', torn=True), errors.Unreachable, "cannot be reached", id="torn-body"),
    ],
)
async def test_error_responses(response: Answer, family: type[errors.KubeError], message: str) -> None:
    async with ScriptedApi(always(response)) as api, KubeClient(api.address()) as client:
        error = await first_error(client)
    assert type(error) is family
    assert "s3cret" not in str(error)
    with pytest.raises(errors.KubeError, match=message):
        raise error
    assert len(api.asked) == 1


async def test_unreachable_server() -> None:
    async with ScriptedApi(always(says(POD))) as api, KubeClient(api.address()) as client:
        await api.stop()
        assert type(await first_error(client)) is errors.Unreachable


async def test_response_timeout() -> None:
    async def silence(_: Asked) -> Answer:
        return await asyncio.Future()

    async with (
        ScriptedApi(silence) as api,
        KubeClient(api.address(), settings=ClientSettings(timeout=0.05)) as client,
    ):
        error = await first_error(client)
    assert type(error) is errors.Timeout
    assert (error.status, error.reason) == (0, "Timeout")


def after(failures: int, failure: Answer) -> Script:
    left = iter(range(failures))

    async def script(_: Asked) -> Answer:
        return failure if next(left, None) is not None else says(POD)

    return script


THROTTLED = fails(429, "TooManyRequests", Retry_After="0")


@pytest.mark.parametrize(
    ("script", "api_request", "requests", "family"),
    [
        pytest.param(
            after(3, THROTTLED), request.get(PODS, "p", namespace="ns"), 4, None, id="succeeds-on-last-attempt"
        ),
        pytest.param(
            after(4, THROTTLED),
            request.get(PODS, "p", namespace="ns"),
            4,
            errors.TooManyRequests,
            id="attempts-exhausted",
        ),
        pytest.param(
            after(1, fails(503, "x", Retry_After="0")), request.update(PODS, POD), 2, None, id="unavailable-update"
        ),
        pytest.param(
            after(1, THROTTLED), request.create(PODS, POD), 1, errors.TooManyRequests, id="create-is-not-retried"
        ),
        pytest.param(
            after(1, fails(503, "x")),
            request.get(PODS, "p", namespace="ns"),
            1,
            errors.Unavailable,
            id="no-retry-after",
        ),
        pytest.param(
            after(1, fails(503, "x", Retry_After="3600")),
            request.get(PODS, "p", namespace="ns"),
            1,
            errors.Unavailable,
            id="retry-after-too-long",
        ),
        pytest.param(
            after(1, fails(503, "x", Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")),
            request.get(PODS, "p", namespace="ns"),
            1,
            errors.Unavailable,
            id="retry-after-is-a-date",
        ),
    ],
)
async def test_retries(
    script: Script, api_request: request.ApiRequest, requests: int, family: type[errors.KubeError] | None
) -> None:
    async with ScriptedApi(script) as api, KubeClient(api.address()) as client:
        if family is None:
            assert await client.send(api_request) == POD
        else:
            with pytest.raises(family):
                await client.send(api_request)
    assert len(api.asked) == requests


def accepts(token: str) -> Script:
    async def script(received: Asked) -> Answer:
        return says(POD) if received.header("authorization") == f"Bearer {token}" else fails(401, "Unauthorized")

    return script


async def test_rotated_token_file_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    async with ScriptedApi(accepts("new")) as api, KubeClient(api.address(Credentials(token_file=file))) as client:
        assert type(await first_error(client)) is errors.Unauthorized
        file.write_text("new\n")
        assert await client.get(PODS, "p", namespace="ns") == POD
        file.unlink()
        assert await client.get(PODS, "p", namespace="ns") == POD
    tokens = [received.header("authorization") for received in api.asked]
    assert tokens == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_fixed_token_is_not_retried() -> None:
    async with ScriptedApi(accepts("new")) as api, KubeClient(api.address(Credentials(token="old"))) as client:
        assert type(await first_error(client)) is errors.Unauthorized
    assert len(api.asked) == 1


async def test_concurrency_limit() -> None:
    under_way, most = 0, 0
    full = asyncio.Event()

    async def script(_: Asked) -> Answer:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == 3:
            full.set()
        await full.wait()
        under_way -= 1
        return says(POD)

    async with (
        ScriptedApi(script) as api,
        KubeClient(api.address(), settings=ClientSettings(concurrent=3)) as client,
    ):
        await asyncio.gather(*(client.get(PODS, "p", namespace="ns") for _ in range(9)))
    assert most == 3


async def test_rate_limit_spreads_requests() -> None:
    async def scenario() -> float:
        async with (
            ScriptedApi(always(says(POD))) as api,
            KubeClient(api.address(), settings=ClientSettings(qps=100, burst=1)) as client,
        ):
            started = asyncio.get_running_loop().time()
            await asyncio.gather(*(client.get(PODS, "p", namespace="ns") for _ in range(11)))
            return asyncio.get_running_loop().time() - started

    assert await scenario() >= 0.09


def listing(pages: dict[str, Answer], whole: Answer) -> Script:
    async def script(received: Asked) -> Answer:
        return pages[received.query.get("continue", "")] if "limit" in received.query else whole

    return script


def page(*names: str, token: str = "") -> Answer:
    return says(
        {"kind": "PodList", "metadata": {"continue": token}, "items": [{"metadata": {"name": n}} for n in names]}
    )


async def test_lists_are_read_page_by_page() -> None:
    pages = {"": page("a", "b", token="2"), "2": page("c", token="3"), "3": says({"items": None})}
    async with ScriptedApi(listing(pages, page())) as api, KubeClient(api.address()) as client:
        pods = await client.list(PODS, selector=ObjectSelector(labels="a=b"))
    assert pods == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in ("a", "b", "c")]
    assert {received.query["labelSelector"] for received in api.asked} == {"a=b"}
    assert {received.query["limit"] for received in api.asked} == {"500"}


async def test_list_that_expires_between_pages_is_read_in_one_request() -> None:
    pages = {"": page("a", "b", token="2"), "2": fails(410, "Expired")}
    async with ScriptedApi(listing(pages, page("b", "c"))) as api, KubeClient(api.address()) as client:
        pods = await client.list(PODS)
    assert [pod["metadata"]["name"] for pod in pods] == ["b", "c"]


def server_tls(tmp_path: Path, *, san: str) -> tuple[ssl.SSLContext, Any]:
    ca = make_ca(tmp_path)
    files = ca.issue(cn="kube", san=[san])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca.cert)
    context.load_cert_chain(files.cert, files.key)
    context.verify_mode = ssl.CERT_REQUIRED
    return context, ca


@pytest.mark.parametrize("embedded", [True, False], ids=["data", "files"])
async def test_client_certificates(tmp_path: Path, embedded: bool) -> None:
    context, ca = server_tls(tmp_path, san="kubernetes.default")
    client_certificate = ca.issue(cn="agent")

    def pem(path: Path) -> Pem:
        return Pem(data=path.read_bytes()) if embedded else Pem(file=path)

    credentials = Credentials(client_certificate=pem(client_certificate.cert), client_key=pem(client_certificate.key))
    async with ScriptedApi(always(says(POD)), tls=context) as api:
        named = api.address(credentials, ca=pem(ca.cert), tls_server_name="kubernetes.default")
        async with KubeClient(named) as client:
            assert await client.get(PODS, "p", namespace="ns") == POD
            if not embedded:
                client_certificate.replace_with(ca.issue(cn="agent-renewed"))
                assert await client.get(PODS, "p", namespace="ns") == POD
        async with KubeClient(api.address(credentials, ca=pem(ca.cert))) as client:
            assert type(await first_error(client)) is errors.Unreachable  # 127.0.0.1 is not in the certificate
        async with KubeClient(api.address(credentials, skip_tls_verify=True)) as client:
            assert await client.get(PODS, "p", namespace="ns") == POD
        stranger = Pem(file=make_ca(tmp_path).cert)
        async with KubeClient(api.address(credentials, ca=stranger, tls_server_name="kubernetes.default")) as client:
            assert type(await first_error(client)) is errors.Unreachable


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(ClusterAddress(server="https://x", ca=Pem(data=b"none"), origin="the-file"), id="ca"),
        pytest.param(
            ClusterAddress(
                server="https://x",
                credentials=Credentials(client_certificate=Pem(data=b"x"), client_key=Pem(data=b"y")),
                origin="the-file",
            ),
            id="client-certificate",
        ),
    ],
)
async def test_unusable_certificates_fail_the_start(address: ClusterAddress) -> None:
    with pytest.raises(errors.BadConfig, match="the-file: the certificates cannot be used"):
        await KubeClient(address).__aenter__()


PLUGIN = """
import json, os, pathlib, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
runs = pathlib.Path(sys.argv[1])
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (count + 1))
assert info["spec"]["interactive"] is False and os.environ["EXTRA"] == "1"
status = {"token": f"token-{count}", "expirationTimestamp": sys.argv[2]}
print(json.dumps({"kind": "ExecCredential", "apiVersion": info["apiVersion"], "status": status}))
"""


def plugin(tmp_path: Path, *, expires: str) -> ExecPlugin:
    return ExecPlugin(
        api_version="client.authentication.k8s.io/v1",
        command=sys.executable,
        arguments=("-c", PLUGIN, str(tmp_path / "runs"), expires),
        environment=(("EXTRA", "1"),),
    )


@pytest.mark.parametrize(
    ("expires", "accepted", "runs"),
    [
        pytest.param("2099-01-01T00:00:00Z", "token-0", 1, id="kept-while-valid"),
        pytest.param("2099-01-01T00:00:00Z", "token-1", 2, id="run-again-when-rejected"),
    ],
)
async def test_exec_plugin(tmp_path: Path, expires: str, accepted: str, runs: int) -> None:
    credentials = Credentials(plugin=plugin(tmp_path, expires=expires))
    async with ScriptedApi(accepts(accepted)) as api, KubeClient(api.address(credentials)) as client:
        await asyncio.gather(*(client.get(PODS, "p", namespace="ns") for _ in range(3)))
        assert await client.get(PODS, "p", namespace="ns") == POD
    assert len((tmp_path / "runs").read_text()) == runs


async def test_exec_plugin_runs_again_when_its_token_expires(tmp_path: Path) -> None:
    credentials = Credentials(plugin=plugin(tmp_path, expires="2001-01-01T00:00:00Z"))
    async with ScriptedApi(always(says(POD))) as api, KubeClient(api.address(credentials)) as client:
        await client.get(PODS, "p", namespace="ns")
        await client.get(PODS, "p", namespace="ns")
    assert [received.header("authorization") for received in api.asked] == ["Bearer token-0", "Bearer token-1"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param(("/no/such/program",), r"cannot be run \(No such file.*; install it", id="missing"),
        pytest.param(("sh", "-c", "exit 3"), "status 3", id="failed"),
        pytest.param(("echo", "s3cret"), "printed no ExecCredential", id="not-json"),
        pytest.param(("echo", '{"kind":"ExecCredential","apiVersion":"other/v1"}'), "of client.auth", id="version"),
    ],
)
async def test_broken_exec_plugin(command: tuple[str, ...], message: str) -> None:
    broken = ExecPlugin(
        api_version="client.authentication.k8s.io/v1",
        command=command[0],
        arguments=command[1:],
        install_hint="install it",
    )
    async with ScriptedApi(always(says(POD))) as api, KubeClient(api.address(Credentials(plugin=broken))) as client:
        with pytest.raises(errors.BadConfig, match=message) as caught:
            await client.get(PODS, "p", namespace="ns")
        assert "s3cret" not in str(caught.value)
