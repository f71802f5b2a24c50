"""The login of the console at a real OpenID provider, in Chromium, and the attacks on it.

The provider is at localhost and the console at 127.0.0.1: for a browser these are two sites.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest

from maestropy.console.sessions import CSRF_HEADER
from tests import waiting
from tests.peers import axe
from tests.peers.browser import Page, browser, program
from tests.peers.openid_provider import CLIENT, SECRET, OpenIdProvider, modules, openid_provider
from tests.stack import harness

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(program() is None, reason="no Chromium is installed; apt-get install chromium"),
    pytest.mark.skipif(modules() is None, reason="node or oidc-provider is not there, and npm cannot get it"),
]
ATTEMPT = "maestro-console-login-"
SESSION = "maestro-console-session"


def flags(provider: OpenIdProvider, console: str, folder: Path, *, roles_from: str = "access") -> list[str]:
    secret = folder / "client-secret"
    secret.write_text(f"{SECRET}\n")
    return [
        "--enable-console",
        "--rest-authn-type=jwt",
        f"--jwks-url={provider.issuer}/jwks",
        f"--jwt-issuer={provider.issuer}",
        f"--jwt-audience={'maestro' if roles_from == 'access' else CLIENT}",
        f"--console-oidc-issuer-url={provider.issuer}",
        f"--console-oidc-client-id={CLIENT}",
        f"--console-oidc-client-secret-file={secret}",
        f"--console-oidc-redirect-url={console}login/callback",
        f"--console-oidc-token={roles_from}",
    ]


async def sign_in(page: Page, *, user: str, is_known: bool = False) -> None:
    """Sign in at the provider by its own page."""
    await page.until("document.querySelector('#provider')")
    await page.click("#provider")
    if not is_known:
        await page.until("location.hostname === 'localhost' && document.querySelector('input[name=login]')")
        await page.run(f"document.querySelector('input[name=login]').value = {user!r}")
        await page.run("document.querySelector('input[name=password]').value = 'any'")
        await page.run("document.querySelector('form').requestSubmit(), 0")
    await page.until("location.hostname === '127.0.0.1' && document.querySelector('.tile b')")


async def who(page: Page) -> dict[str, Any]:
    return dict(await page.run("fetch('api/session').then((response) => response.json())"))


async def test_browser_signs_in_renews_and_signs_out(tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)
    console = f"http://127.0.0.1:{place.ports[0]}/console/"
    async with (
        openid_provider([console], ttl=300) as provider,
        place.run(*flags(provider, console, tmp_path)) as server,
        browser(tmp_path / "browser") as page,
    ):
        await page.visit(f"{console}#/stuck")
        await provider.tell(ttl=9)
        await page.until("document.querySelector('#provider')")
        await page.click("#provider")
        await page.until("location.hostname === 'localhost' && document.querySelector('input[name=login]')")
        await page.run("document.querySelector('input[name=login]').value = 'reader'")
        await page.run("document.querySelector('input[name=password]').value = 'any'")
        await page.run("document.querySelector('form').requestSubmit(), 0")
        # The page that was open is open again, and nothing of the login is in its address.
        await page.until(f"location.href === {f'{console}#/stuck'!r} && document.querySelector('h1')")
        session = await who(page)
        assert (session["user"], session["role"]) == ("reader", "read")
        kept = await page.run("JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}])")
        assert kept == '["",{},{}]'
        cookies = (await page.ask("Network.getCookies", urls=[console]))["cookies"]
        [cookie] = [one for one in cookies if one["name"].startswith("maestro-console")]
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (SESSION, True, "Strict")
        assert "eyJ" not in cookie["value"]

        # The token is renewed while the page is open, by rotated refresh tokens, and by one tab only.
        async def renewals() -> bool:
            return bool((await provider.tell())["renewals"] >= 2)

        await waiting.until(renewals, what="two renewals", seconds=60)
        assert (await who(page))["isSignedIn"]
        assert (await provider.tell(ttl=300))["tokenErrors"] == []

        await page.click("#tools button:last-child")
        await page.until("location.hostname === 'localhost' && document.querySelector('button[name=logout]')")
        await page.click("button[name=logout]")
        await page.until(f"location.href === {console!r} && document.querySelector('#provider')")
        cookies = (await page.ask("Network.getCookies", urls=[console]))["cookies"]
        assert [one["name"] for one in cookies if one["name"].startswith("maestro-console")] == []

        await sign_in(page, user="writer")
        assert (await who(page))["role"] == "write"
        # Refused by the provider: the session ends in words.
        await provider.tell("forget-refresh")
        renewed = await page.run(
            "fetch('api/session/renewal', {method: 'POST',"
            " headers: {'X-Maestro-Console': '1', 'Content-Type': 'application/json'}})"
            ".then(async (response) => [response.status, (await response.json()).error])"
        )
        assert renewed[0] == 401
        assert "Your session has ended" in renewed[1]
        await page.run("location.hash = '#/works'")
        await page.until("document.documentElement?.dataset.ready === 'sign-in'")
        log = server.log.read_text()
        for secret in (SECRET, "eyJ", "code=", "refresh_token"):
            assert secret not in log, secret
        assert "Traceback" not in log


async def test_instances_share_sessions_follow_new_keys_and_end_without_refresh_token(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    places = harness.Place(folder=tmp_path), harness.Place(folder=tmp_path / "other")
    consoles = [f"http://127.0.0.1:{place.ports[0]}/console/" for place in places]
    async with (
        openid_provider(consoles, refreshes=False) as provider,
        places[0].run(*flags(provider, consoles[0], tmp_path, roles_from="id")),
        places[1].run(*flags(provider, consoles[1], tmp_path, roles_from="id")),
        browser(tmp_path / "browser") as page,
    ):
        await page.visit(consoles[0])
        await sign_in(page, user="reader")
        await provider.tell("rotate", ttl=6)
        await page.visit(consoles[1])
        assert (await who(page))["user"] == "reader", "the cookie of one instance is taken by another"
        await page.run("fetch('api/session', {method: 'DELETE', headers: {'X-Maestro-Console': '1'}})")

        # The first instance read the keys a moment ago, and does not read them again for every unknown one.
        await page.visit(consoles[0])
        await page.click("#provider")
        await page.until("document.documentElement?.dataset.ready === 'problem'")
        assert "try again in a minute" in await page.run("document.querySelector('main').innerText")
        source = axe.script()
        assert source is None or await axe.violations(page, source) == []
        await page.click("main a")
        await page.until("document.querySelector('#provider')")
        assert source is None or await axe.violations(page, source) == []

        await page.visit(consoles[1])
        await sign_in(page, user="reader", is_known=True)
        await page.until("document.documentElement?.dataset.ready === 'sign-in'")
        assert "reached its end" in await page.run("document.querySelector('main').innerText")


@dataclass(kw_only=True)
class Attacked:
    """One server and its provider, and browsers that do what no real one does."""

    server: harness.Process
    provider: OpenIdProvider
    console: str

    def browser(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(verify=False, timeout=30)

    @property
    def headers(self) -> dict[str, str]:
        return {CSRF_HEADER: "1", "Content-Type": "application/json", "Origin": self.console.removesuffix("/console/")}

    async def begin(self, client: httpx.AsyncClient) -> str:
        """Begin a sign-in; return the address at the provider."""
        answer = await client.post(f"{self.console}api/session/login", headers=self.headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["location"])

    async def answered(self, client: httpx.AsyncClient, *, user: str = "reader", **changes: str) -> str:
        """Return the address that the provider leads back to."""
        address = _changed(await self.begin(client), **changes)
        return await self.provider.answer(client, address, user=user)

    async def finish(self, client: httpx.AsyncClient, address: str) -> httpx.Response:
        headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
        return await client.get(address, headers=headers)


def _changed(address: str, **changes: str) -> str:
    parts = urlsplit(address)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    return parts._replace(query=urlencode({name: value for name, value in query.items() if value})).geturl()


def refused(response: httpx.Response, words: str) -> None:
    """Check that nobody is signed in, and that a page says why, without a secret."""
    assert response.status_code >= 400, response.headers
    assert words in response.text, response.text
    assert "Back to the console" in response.text
    assert not any(f"{SESSION}=" in one and "Max-Age=0" not in one for one in response.headers.get_list("set-cookie"))
    for secret in (SECRET, "eyJ", "Traceback", "<script"):
        assert secret not in response.text


async def login_csrf(stage: Attacked) -> None:
    """The link with the attacker's answer is opened in the victim's browser."""
    async with stage.browser() as attacker, stage.browser() as victim:
        refused(await stage.finish(victim, await stage.answered(attacker)), "does not belong to this browser")
        await stage.begin(victim)
        refused(await stage.finish(victim, await stage.answered(attacker)), "does not belong to this browser")


async def code_under_the_state_of_the_victim(stage: Attacked) -> None:
    """The attacker's code comes with the victim's own state: PKCE refuses it."""
    async with stage.browser() as attacker, stage.browser() as victim:
        stolen = parse_qs(urlsplit(await stage.answered(attacker)).query)["code"][0]
        own = await stage.answered(victim)
        refused(await stage.finish(victim, _changed(own, code=stolen)), "expired or was used before")


async def other_nonce(stage: Attacked) -> None:
    """The ID token was made for another attempt."""
    async with stage.browser() as victim:
        refused(await stage.finish(victim, await stage.answered(victim, nonce="another")), "another sign-in")


async def replayed_code(stage: Attacked) -> None:
    """An answer is used twice, also with the attempt put back."""
    async with stage.browser() as victim:
        address = await stage.answered(victim)
        attempt = {one.name: one.value or "" for one in victim.cookies.jar if one.name.startswith(ATTEMPT)}
        first = await stage.finish(victim, address)
        assert (first.status_code, first.headers["location"]) == (303, stage.console)
        refused(await stage.finish(victim, address), "does not belong to this browser")
        async with stage.browser() as other:
            other.cookies.update(attempt)
            refused(await stage.finish(other, address), "expired or was used before")


async def redirect_to_another_host(stage: Attacked) -> None:
    """No parameter leads elsewhere, and the provider takes no other redirect URL."""
    async with stage.browser() as victim:
        address = await stage.answered(victim)
        evil = dict.fromkeys(("next", "return", "redirect_uri", "location"), "https://evil.example/")
        done = await stage.finish(victim, _changed(address, **evil))
        assert done.headers["location"] == stage.console
        other = _changed(await stage.begin(victim), redirect_uri="https://evil.example/console/login/callback")
        assert (await victim.get(other)).status_code == 400


async def cookie_from_another_site(stage: Attacked) -> None:
    """Cookies that this server did not seal for this purpose are none."""
    async with stage.browser() as attacker, stage.browser() as victim:
        await stage.begin(attacker)
        attempt = next(one.value or "" for one in attacker.cookies.jar if one.name.startswith(ATTEMPT))
        for text in (f"1{attempt}", "1", "9x", "1eyJhbGciOiJub25lIn0.e30.", "4x", "2" + "x" * 3800):
            answer = await victim.get(f"{stage.console}api/fleet", headers={"Cookie": f"{SESSION}={text}"})
            assert answer.status_code == 401, text


async def login_begun_by_another_site(stage: Attacked) -> None:
    """A form or a script of another site cannot begin, renew or end a session."""
    async with stage.browser() as victim:
        for path in ("login", "renewal"):
            for headers in (
                {"Origin": "https://evil.example"},
                {"Origin": "https://evil.example", CSRF_HEADER: "1"},
                {**stage.headers, "Sec-Fetch-Site": "cross-site"},
            ):
                answer = await victim.post(f"{stage.console}api/session/{path}", headers=headers)
                assert answer.status_code == 403, (path, headers)
                assert "set-cookie" not in answer.headers


async def answer_of_another_issuer(stage: Attacked) -> None:
    """Another provider passes its answer for that of this one."""
    async with stage.browser() as victim:
        for issuer in ("https://evil.example", ""):
            address = _changed(await stage.answered(victim), iss=issuer)
            refused(await stage.finish(victim, address), "another provider")


async def error_with_a_script(stage: Attacked) -> None:
    """The description of an error is not shown, and an unknown code neither."""
    async with stage.browser() as victim:
        for error, words in (("access_denied", "did not allow"), ("<script>alert(1)</script>", "no description")):
            address = _changed(await stage.answered(victim), code="", error=error, error_description="<script>")
            refused(await stage.finish(victim, address), words)


async def user_without_a_role(stage: Attacked) -> None:
    """Whoever the provider knows is not yet allowed to look."""
    async with stage.browser() as victim:
        refused(await stage.finish(victim, await stage.answered(victim, user="nobody")), "role")


async def token_for_another_audience(stage: Attacked) -> None:
    """A token that is meant for another service is not taken."""
    await stage.provider.tell(audience="other")
    async with stage.browser() as victim:
        refused(await stage.finish(victim, await stage.answered(victim)), "--jwt-audience")
    await stage.provider.tell(audience="maestro")


async def provider_that_is_away(stage: Attacked) -> None:
    """An answer comes while the provider cannot be reached."""
    async with stage.browser() as victim:
        address = await stage.answered(victim)
        await stage.provider.tell("down")
        refused(await stage.finish(victim, address), "cannot be reached")
        await stage.provider.tell("up")


ATTACKS = (
    login_csrf,
    code_under_the_state_of_the_victim,
    other_nonce,
    replayed_code,
    redirect_to_another_host,
    cookie_from_another_site,
    login_begun_by_another_site,
    answer_of_another_issuer,
    error_with_a_script,
    user_without_a_role,
    token_for_another_audience,
    provider_that_is_away,
)


async def test_attacks_sign_nobody_in(tmp_path: Path) -> None:
    place = harness.Place(folder=tmp_path)
    console = f"http://127.0.0.1:{place.ports[0]}/console/"
    async with (
        openid_provider([console]) as provider,
        place.run(*flags(provider, console, tmp_path)) as server,
    ):
        stage = Attacked(server=server, provider=provider, console=console)
        for attack in ATTACKS:
            try:
                await attack(stage)
            except AssertionError as error:
                raise AssertionError(f"{attack.__name__}: {attack.__doc__}") from error
        log = server.log.read_text()
        assert "Traceback" not in log
        assert SECRET not in log
        assert "eyJ" not in log
        assert "a user could not sign in to the console" in log
