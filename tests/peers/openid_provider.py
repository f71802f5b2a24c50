"""A real OpenID provider on loopback: npm's oidc-provider, with its development login and a door for the test."""

import asyncio
import contextlib
import html
import json
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from tests.peers import npm_packages
from tests.stack import harness

PACKAGE = "oidc-provider@9.13.3"
CLIENT = "maestro-console"
SECRET = "client-secret-of-tests-0123456789"
_START_SECONDS = 60.0
_FORM = re.compile(r'action="([^"]+)"')


def modules() -> Path | None:
    """Return where the provider is installed; None if node or the package cannot be had."""
    return npm_packages.installed(PACKAGE) if shutil.which("node") else None


@dataclass(frozen=True, kw_only=True)
class OpenIdProvider:
    """A running provider. Its users are reader, writer and nobody, after their roles."""

    issuer: str

    async def tell(self, what: str = "state", **changes: Any) -> dict[str, Any]:
        """Ask for something by the door of the test, and return the state of the provider."""
        query = {name: json.dumps(value) for name, value in changes.items()}
        async with httpx.AsyncClient(verify=False) as client:
            answer = await client.get(f"{self.issuer}/test/{what}", params=query)
        return dict(answer.json())

    async def answer(self, client: httpx.AsyncClient, address: str, *, user: str) -> str:
        """Sign in as a browser does, from the address of the provider on; return where it leads back to."""
        response = await client.get(address)
        for _ in range(10):
            if response.is_redirect:
                address = urljoin(address, response.headers["location"])
                if not address.startswith(self.issuer):
                    return address
                response = await client.get(address)
            else:
                assert response.status_code == 200, response.text
                found = _FORM.search(response.text)
                assert found, response.text
                address = urljoin(address, html.unescape(found[1]))
                form = {"prompt": "login", "login": user, "password": "any"}
                response = await client.post(address, data=form)
        raise AssertionError("the provider does not lead back")


@contextlib.asynccontextmanager
async def openid_provider(consoles: Sequence[str], **options: Any) -> AsyncIterator[OpenIdProvider]:
    """Run a provider for consoles at these addresses, each with a slash at its end."""
    folder, node, port = modules(), shutil.which("node"), harness.free_ports(1)[0]
    assert folder
    assert node
    told = {
        "port": port,
        "secret": SECRET,
        "redirectUris": [f"{console}login/callback" for console in consoles],
        "homes": list(consoles),
        **options,
    }
    script = str(Path(__file__).with_suffix(".mjs"))
    process = await asyncio.create_subprocess_exec(
        node, script, str(folder), json.dumps(told), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
        assert line == b"ready\n", line
        yield OpenIdProvider(issuer=f"http://localhost:{port}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
