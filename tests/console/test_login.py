"""The login at an OpenID provider without one: what is refused, in which words, and how long a session lasts."""

import base64
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import orjson
import pytest

from maestropy.aio.clock import Clock
from maestropy.console.oidc import flow, problems, sealing
from maestropy.console.oidc.flow import LoginOptions
from maestropy.console.oidc.login import Login
from maestropy.console.oidc.problems import LoginFailed
from maestropy.console.oidc.provider import Provider
from maestropy.console.oidc.sealing import Seal
from maestropy.console.oidc.session import Jar, Session
from maestropy.console.serve import ConsoleOptions, console
from maestropy.console.sessions import CSRF_HEADER, LONGEST_SECONDS, Gate, Refused, Viewer
from tests.console.fake_api import FakeApi, bundle

ISSUER = "https://login.example/realms/sre"
CONSOLE = "https://maestro.example/console/"
OPTIONS = LoginOptions(
    issuer=ISSUER, client_id="console", client_secret="s3cret-of-the-client", redirect_url=f"{CONSOLE}login/callback"
)
DOCUMENT = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.example/auth?tenant=1",
    "token_endpoint": "https://login.example/token",
    "end_session_endpoint": "https://login.example/logout",
    "revocation_endpoint": "https://login.example/revoke",
    "code_challenge_methods_supported": ["S256"],
}
HEADERS = {CSRF_HEADER: "1", "Origin": "https://maestro.example", "Content-Type": "application/json"}


def jwt(**claims: Any) -> str:
    body = base64.urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.c2lnbmF0dXJl"


@dataclass
class FakeProvider:
    """Answers of a provider, and the clock of both sides."""

    now: float = 1_000_000.0
    document: Any = field(default_factory=lambda: dict(DOCUMENT))
    nonce: str = ""
    user: str = "ada"
    lifetime: float = 300.0
    token: tuple[int, Any] | None = None
    is_down: bool = False
    key: str = ""
    known_keys: tuple[str, ...] = ("",)
    more: Mapping[str, Any] = field(default_factory=dict)
    forms: list[dict[str, str]] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    refusals: list[tuple[str, int, str]] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)

    def handle(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("refused")
        if request.url.path.endswith("openid-configuration"):
            return httpx.Response(200, json=self.document)
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        self.forms.append({"path": request.url.path, **form})
        if request.url.path == "/revoke":
            return httpx.Response(200)
        if self.token is not None:
            return httpx.Response(self.token[0], content=self.token[1])
        exp = self.now + self.lifetime
        answer = {
            "access_token": jwt(sub=self.user, exp=exp, kid=self.key),
            "id_token": jwt(sub=self.user, exp=exp, nonce=self.nonce, aud="console"),
            "refresh_token": f"refresh-{next(self._numbers)}",
        }
        return httpx.Response(200, json={**answer, **self.more})


def claims_of(token: str) -> dict[str, Any]:
    return dict(orjson.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")))


@asynccontextmanager
async def opened(provider: FakeProvider) -> AsyncIterator[httpx.AsyncClient]:
    clock = Clock(epoch=lambda: provider.now, monotonic=lambda: provider.now)
    randoms = itertools.count(1)

    def random(size: int) -> bytes:
        return next(randoms).to_bytes(size, "big")

    async def authenticate(authorization: str | None) -> Viewer:
        claims = claims_of(str(authorization))
        if claims.get("kid", "") not in provider.known_keys:
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is signed with a key that is not known here")
        if claims["exp"] + 30 < provider.now:
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token has expired; get a new one")
        if claims["sub"] == "nobody":
            raise Refused(HTTPStatus.FORBIDDEN, "The console needs the role read, and the token has none")
        return Viewer(user=claims["sub"], role="read")

    async def check_id_token(token: str) -> dict[str, Any]:
        if provider.more.get("is_early"):
            raise Refused(HTTPStatus.UNAUTHORIZED, "the token is not valid yet; check the clocks")
        return claims_of(token)

    seal = Seal(OPTIONS.client_secret, issuer=ISSUER, client_id="console", random=random)
    login = Login(
        options=OPTIONS,
        provider=Provider(OPTIONS, monotonic=clock.monotonic, transport=httpx.MockTransport(provider.handle)),
        jar=Jar(seal=seal, is_secure=True, now=clock.epoch),
        authenticate=authenticate,
        check_id_token=check_id_token,
        random=random,
        clock=clock,
        report=provider.reports.append,
        note_refusal=lambda request, status, reason: provider.refusals.append((request.url.path, status, reason)),
    )
    gate = Gate(allows_host=lambda _: True, authenticate=authenticate, session_token=login.token)
    options = ConsoleOptions(client=FakeApi([bundle(1)]).client(), description="test", gate=gate, login=login)
    async with options.client, console(options) as running:
        transport = httpx.ASGITransport(running.app("/console"))
        async with httpx.AsyncClient(transport=transport, base_url="https://maestro.example") as browser:
            yield browser


async def begin(browser: httpx.AsyncClient, provider: FakeProvider) -> dict[str, str]:
    response = await browser.post("/console/api/session/login", headers=HEADERS)
    assert response.status_code == 200, response.text
    query = {name: values[0] for name, values in parse_qs(urlsplit(response.json()["location"]).query).items()}
    provider.nonce = query["nonce"]
    return query


async def sign_in(browser: httpx.AsyncClient, provider: FakeProvider) -> httpx.Response:
    query = await begin(browser, provider)
    return await browser.get("/console/login/callback", params={"state": query["state"], "code": "c0de"})


async def renew(browser: httpx.AsyncClient) -> httpx.Response:
    return await browser.post("/console/api/session/renewal", headers=HEADERS)


async def test_request_has_pkce_state_and_nonce_and_its_cookie_belongs_to_the_host() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        response = await browser.post("/console/api/session/login", headers=HEADERS)
        address = urlsplit(response.json()["location"])
        query = parse_qs(address.query)
        assert (address.netloc, query["tenant"]) == ("login.example", ["1"])
        assert query["code_challenge_method"] == ["S256"]
        assert query["redirect_uri"] == [OPTIONS.redirect_url]
        assert len({query[name][0] for name in ("state", "nonce", "code_challenge")}) == 3
        cookie = response.headers["set-cookie"]
        assert cookie.startswith("__Host-maestro-console-login-")
        for part in ("HttpOnly", "Secure", "Path=/", "SameSite=lax", "Max-Age=600"):
            assert part in cookie, cookie
        assert query["state"][0] not in cookie.partition("=")[2]


async def test_session_is_sealed_renewed_by_rotation_and_revoked_at_the_end() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        response = await sign_in(browser, provider)
        assert (response.status_code, response.headers["location"]) == (303, CONSOLE)
        session = next(one for one in response.headers.get_list("set-cookie") if "session=" in one)
        assert "eyJ" not in session
        assert "SameSite=strict" in session
        assert "HttpOnly" in session
        who = (await browser.get("/console/api/session")).json()
        assert (who["user"], who["provider"]) == ("ada", "login.example")
        assert (who["renewIn"], who["endsIn"]) == (240.0, LONGEST_SECONDS)

        provider.now += 400
        assert (await browser.get("/console/api/fleet")).status_code == 401
        late = (await browser.get("/console/api/session")).json()
        assert (late["isSignedIn"], late["renewIn"]) == (False, 0.0)
        assert (await renew(browser)).json()["renewIn"] == 240.0
        assert (await browser.get("/console/api/fleet")).status_code == 200
        provider.now += 300
        await renew(browser)
        assert [form.get("refresh_token") for form in provider.forms[1:]] == ["refresh-0", "refresh-1"]

        ended = await browser.delete("/console/api/session", headers=HEADERS)
        leads_to = urlsplit(ended.json()["location"])
        assert leads_to.path == "/logout"
        assert parse_qs(leads_to.query)["post_logout_redirect_uri"] == [CONSOLE]
        assert "eyJ" not in ended.text
        assert provider.forms[-1]["token"] == "refresh-2"
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_session_ends_after_eight_hours_whatever_the_provider_says() -> None:
    provider = FakeProvider(lifetime=100 * 3600.0)
    async with opened(provider) as browser:
        await sign_in(browser, provider)
        provider.now += LONGEST_SECONDS - 1
        assert (await browser.get("/console/api/fleet")).status_code == 200
        provider.now += 2
        assert (await browser.get("/console/api/fleet")).status_code == 401
        assert "Your session has ended" in (await renew(browser)).json()["error"]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        pytest.param({"is_down": True}, 502, "cannot be reached", id="unreachable"),
        pytest.param({"token": (503, b"<html>busy")}, 502, "cannot be reached", id="no-json"),
        pytest.param({"token": (200, b"x" * 400_000)}, 502, "cannot be reached", id="endless-answer"),
        pytest.param({"token": (400, b'{"error":"invalid_grant"}')}, 400, "expired or was used", id="code-used"),
        pytest.param({"token": (401, b'{"error":"invalid_client"}')}, 502, "client-secret-file", id="wrong-secret"),
        pytest.param({"token": (400, b'{"error":"invalid_scope"}')}, 400, "oidc-scopes", id="scope"),
        pytest.param({"token": (200, b"{}")}, 502, "gave no token", id="no-tokens"),
        pytest.param({"more": {"token_type": "mac"}}, 502, "token of another type", id="token-type"),
        pytest.param({"more": {"access_token": 7}}, 502, "gave no token", id="odd-token"),
        pytest.param({"more": {"is_early": True}}, 401, "clocks of server and provider", id="clock-skew"),
        pytest.param({"user": "nobody"}, 403, "--jwt-role-read", id="no-role"),
        pytest.param({"more": {"refresh_token": "x" * 20_000}}, 502, "too large", id="too-large"),
    ],
)
async def test_problem_is_a_page_in_words(change: dict[str, Any], status: int, words: str) -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        query = await begin(browser, provider)
        for name, value in change.items():
            setattr(provider, name, value)
        callback = {"state": query["state"], "code": "c0de"}
        response = await browser.get("/console/login/callback", params=callback)
        assert (response.status_code, words in response.text) == (status, True), response.text
        assert response.headers["content-type"].startswith("text/html")
        assert "script-src 'self'" in response.headers["content-security-policy"]
        assert "Back to the console" in response.text
        assert (await browser.get("/console/api/fleet")).status_code == 401
        for secret in (OPTIONS.client_secret, "eyJ", "c0de", "refresh-"):
            assert secret not in response.text
            assert not any(secret in report for report in provider.reports)


async def test_attempt_of_more_than_ten_minutes_ago_is_over() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        query = await begin(browser, provider)
        provider.now += flow.ATTEMPT_SECONDS + 1
        response = await browser.get("/console/login/callback", params={"state": query["state"], "code": "c0de"})
        assert (response.status_code, "more than ten minutes" in response.text) == (400, True)
        assert provider.forms == []


async def test_unreachable_provider_keeps_a_session_and_a_refusal_ends_it() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        await sign_in(browser, provider)
        provider.is_down = True
        assert (await renew(browser)).status_code == 502
        assert (await browser.get("/console/api/fleet")).status_code == 200
        provider.is_down, provider.token = False, (400, b'{"error":"invalid_grant"}')
        refused = await renew(browser)
        assert (refused.status_code, "Sign in again" in refused.text) == (401, True)
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_renewal_with_a_key_that_is_not_known_yet_keeps_the_session_and_its_refresh_token() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        await sign_in(browser, provider)
        provider.key = "new"
        early = await renew(browser)
        assert (early.status_code, "try again in a minute" in early.json()["error"]) == (503, True)
        assert (await browser.get("/console/api/fleet")).status_code == 200
        provider.known_keys = ("", "new")
        assert (await renew(browser)).status_code == 200
        assert [form["refresh_token"] for form in provider.forms[1:]] == ["refresh-0", "refresh-1"]


async def test_session_that_another_version_sealed_is_none() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        seal = Seal(OPTIONS.client_secret, issuer=ISSUER, client_id="console", random=bytes)
        browser.cookies.set("__Host-maestro-console-session", f"1{seal.close('session', {'tokens': []})}")
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_renewal_for_another_user_ends_the_session() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        await sign_in(browser, provider)
        provider.user = "mallory"
        assert (await renew(browser)).status_code == 401
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_tokens_of_two_users_are_no_sign_in() -> None:
    provider = FakeProvider()
    provider.more = {"access_token": jwt(sub="mallory", exp=provider.now + 900, kid="")}
    async with opened(provider) as browser:
        answer = await begin(browser, provider)
        response = await browser.get("/console/login/callback", params={"code": "c", "state": answer["state"]})
        assert (response.status_code, "another user" in response.text) == (401, True), response.text
        ((path, status, reason),) = provider.refusals
        assert (path, status, "user" in reason) == ("/console/login/callback", 401, True)
        assert (await browser.get("/console/api/fleet")).status_code == 401


async def test_renewal_with_the_id_token_of_another_user_ends_the_session() -> None:
    provider = FakeProvider()
    async with opened(provider) as browser:
        await sign_in(browser, provider)
        provider.more = {"id_token": jwt(sub="mallory", exp=provider.now + 900, aud="console")}
        assert (await renew(browser)).status_code == 401
        assert (await browser.get("/console/api/fleet")).status_code == 401


@pytest.mark.parametrize("sign", ["\r\n", "\n", "\t", "\x00", " ", "\u202e"])
def test_endpoint_with_control_characters_is_refused(sign: str) -> None:
    address = f"https://login.example/authorize{sign}X: y"
    document = {"issuer": ISSUER, "token_endpoint": "https://login.example/token", "authorization_endpoint": address}
    with pytest.raises(LoginFailed) as refused:
        flow.parse_metadata(document, issuer=ISSUER)
    assert refused.value.detail.startswith("authorization_endpoint")


async def test_sign_in_at_another_address_of_the_console_names_the_right_one() -> None:
    async with opened(FakeProvider()) as browser:
        headers = {**HEADERS, "Origin": "https://10.0.0.1", "Host": "10.0.0.1"}
        response = await browser.post("/console/api/session/login", headers=headers)
        assert (response.status_code, CONSOLE in response.json()["error"]) == (409, True)


async def test_provider_that_is_away_is_asked_rarely_and_found_again() -> None:
    provider = FakeProvider(is_down=True)
    async with opened(provider) as browser:
        first = await browser.post("/console/api/session/login", headers=HEADERS)
        assert (first.status_code, "Try again in a minute" in first.json()["error"]) == (502, True)
        provider.is_down = False
        assert (await browser.post("/console/api/session/login", headers=HEADERS)).status_code == 502
        provider.now += 5
        assert (await browser.post("/console/api/session/login", headers=HEADERS)).status_code == 200
        assert len(provider.reports) == 1


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        pytest.param({"issuer": f"{ISSUER}/"}, "names the issuer", id="other-issuer"),
        pytest.param({"token_endpoint": "http://login.example/token"}, "token_endpoint", id="no-tls"),
        pytest.param({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint", id="script"),
        pytest.param({"authorization_endpoint": None}, "authorization_endpoint", id="absent"),
        pytest.param({"end_session_endpoint": "http://[bad"}, "end_session_endpoint", id="malformed"),
        pytest.param({"code_challenge_methods_supported": ["plain"]}, "S256", id="no-pkce"),
    ],
)
def test_discovery_document_that_is_refused(change: dict[str, Any], detail: str) -> None:
    with pytest.raises(LoginFailed) as failure:
        flow.parse_metadata({**DOCUMENT, **change}, issuer=ISSUER)
    assert failure.value.problem is problems.WRONG_DISCOVERY
    assert detail in failure.value.detail


@pytest.mark.parametrize("document", [[], "text", None, 7])
def test_discovery_document_that_is_no_object(document: object) -> None:
    with pytest.raises(LoginFailed):
        flow.parse_metadata(document, issuer=ISSUER)


@pytest.mark.parametrize(
    ("claims", "is_accepted"),
    [
        pytest.param({"nonce": "n", "aud": "console"}, True, id="right"),
        pytest.param({"nonce": "other", "aud": "console"}, False, id="other-nonce"),
        pytest.param({"aud": "console"}, False, id="no-nonce"),
        pytest.param({"nonce": 7, "aud": "console"}, False, id="odd-nonce"),
        pytest.param({"nonce": "n", "aud": ["console", "other"]}, False, id="shared-without-azp"),
        pytest.param({"nonce": "n", "aud": ["console", "other"], "azp": "console"}, True, id="shared"),
        pytest.param({"nonce": "n", "aud": "console", "azp": "other"}, False, id="other-azp"),
    ],
)
def test_id_token_belongs_to_the_attempt(claims: dict[str, Any], is_accepted: bool) -> None:
    attempt = flow.Attempt(state="s", nonce="n", verifier="v", expires=1.0)
    if is_accepted:
        flow.check_id_token(claims, attempt, client_id="console")
    else:
        with pytest.raises(LoginFailed):
            flow.check_id_token(claims, attempt, client_id="console")


def test_sealed_text_opens_only_with_its_secret_purpose_and_client() -> None:
    made = {"secret": "one secret of sixteen", "issuer": ISSUER, "client_id": "console"}

    def seal(**changes: str) -> Seal:
        given = {**made, **changes}
        return Seal(given["secret"], issuer=given["issuer"], client_id=given["client_id"], random=bytes)

    text = seal().close("session", {"a": 1})
    assert seal().open("session", text) == {"a": 1}
    for other in (seal(secret="another secret, longer"), seal(issuer="https://x"), seal(client_id="y")):
        assert other.open("session", text) is None
    assert seal().open("login", text) is None
    for bad in ("", "x", "é", text[:-2], text[1:], "=" * 9):
        assert seal().open("session", bad) is None


@pytest.mark.parametrize("length", [1, 3799, 3800, 3801, 4 * 3800])
def test_long_text_is_spread_over_cookies(length: int) -> None:
    text = ("0123456789" * (length // 10 + 1))[:length]
    parts = sealing.split("name", text)
    assert all(len(part) < 4000 for part in parts.values())
    assert sealing.join("name", {**parts, "name.9": "left of an older session"}) == text
    assert len(parts) == 1 or sealing.join("name", {"name": parts["name"]}) == ""
    with pytest.raises(sealing.TooLarge):
        sealing.split("name", "x" * (4 * 3800 + 1))


def test_short_tokens_are_renewed_in_their_last_third() -> None:
    session = Session(token=jwt(exp=109), refresh="r", user="u", began=100.0, obtained=100.0)
    assert session.facts(100.0)["renewIn"] == 6.0
    assert Session(token=jwt(exp=109), refresh="", user="u", began=100.0, obtained=100.0).facts(100.0) == {
        "endsIn": 9.0,
        "renewIn": None,
    }
