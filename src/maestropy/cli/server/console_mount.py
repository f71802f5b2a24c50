"""Serve the console inside a server: it reads the REST API in process, and authenticates as REST does.

It acts as its viewers: an action is a request of the viewer, with the viewer's token and from the viewer's address.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import httpx
from starlette.types import ASGIApp

from maestropy.cli.server import console_login
from maestropy.console.actions import ActionAccess, Actor
from maestropy.console.oidc.flow import LoginOptions
from maestropy.console.serve import ConsoleOptions, console
from maestropy.console.sessions import Authenticate, Gate, Refused, Viewer
from maestropy.sdk.client import AsyncMaestro
from maestropy.sdk.retry import RetryPolicy
from maestropy.server.auth.rest import Unverified
from maestropy.server.auth.roles import Role
from maestropy.server.runtime.mounts import Mount, MountContext

PATH: Final = "/console"
_IN_PROCESS: Final = "https://maestro.localhost"
"""Never resolved: the requests stay in the process. By its scheme the client sends the token of a viewer."""


def mount(options: LoginOptions | None = None) -> Mount:
    """Return the console as a server mounts it; `options` name the OpenID provider of its login."""
    return Mount(path=PATH, open=lambda context: _open(context, options))


@asynccontextmanager
async def _open(context: MountContext, options: LoginOptions | None) -> AsyncIterator[ASGIApp]:
    transport = httpx.ASGITransport(context.api, client=("127.0.0.1", 0))
    async with AsyncMaestro(
        environ={}, api_url=_IN_PROCESS, retry=RetryPolicy(attempts=1), transport=transport
    ) as client:
        gate = Gate(
            allows_host=context.allows_host,
            authenticate=_authenticator(context),
            open_role="admin",
            note_refusal=context.note_refusal,
        )
        login = None if options is None else console_login.login(options, context, authenticate=gate.authenticate)
        if login is not None:
            gate = replace(gate, session_token=login.token)
        actions = ActionAccess(client=lambda actor: _as_viewer(context, actor), requested_by="console")
        served = ConsoleOptions(client=client, description="Maestro", actions=actions, gate=gate, login=login)
        async with console(served) as running:
            yield running.app(PATH)


def _as_viewer(context: MountContext, actor: Actor) -> AsyncMaestro:
    transport = httpx.ASGITransport(context.authenticated_api, client=(actor.address, 0))
    return AsyncMaestro(
        environ={},
        api_url=_IN_PROCESS,
        token=actor.token or None,
        retry=RetryPolicy(attempts=1),
        transport=transport,
    )


def _authenticator(context: MountContext) -> Authenticate | None:
    verify = context.authenticate
    if verify is None:
        return None

    async def authenticate(authorization: str | None) -> Viewer:
        try:
            caller = await verify(authorization)
        except Unverified as error:
            raise Refused(HTTPStatus.UNAUTHORIZED, error.reason) from error
        if caller.role < Role.READ:
            raise Refused(HTTPStatus.FORBIDDEN, "The console needs the role read, and the token has none.")
        if caller.sources is not None:
            raise Refused(
                HTTPStatus.FORBIDDEN,
                "The console shows works of all sources, and the token is limited to some. Use `maestro get works`.",
            )
        return Viewer(user=caller.identity.user, role=caller.role.name.lower())

    return authenticate
