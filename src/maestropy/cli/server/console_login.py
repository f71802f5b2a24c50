"""Wire the login of the console inside a server: its settings, and REST's checks of tokens. No rules."""

import secrets
from collections.abc import Mapping
from http import HTTPStatus

from maestropy.aio.clock import Clock
from maestropy.console.oidc.flow import LoginOptions
from maestropy.console.oidc.login import Login
from maestropy.console.oidc.provider import Provider
from maestropy.console.oidc.sealing import Seal
from maestropy.console.oidc.session import Jar
from maestropy.console.sessions import Authenticate, Refused
from maestropy.server.auth.rest import Unverified
from maestropy.server.runtime.mounts import MountContext
from maestropy.server.settings.console_login import ConsoleLoginSettings, read_secret


def options(settings: ConsoleLoginSettings) -> LoginOptions | None:
    """Return the provider of checked settings, None if they name none; raises SettingsError for a bad secret file."""
    if settings.client_secret_file is None:
        return None
    return LoginOptions(
        issuer=settings.issuer_url,
        client_id=settings.client_id,
        client_secret=read_secret(settings.client_secret_file),
        redirect_url=settings.redirect_url,
        scopes=settings.scopes,
        roles_from=settings.roles_from,
    )


def login(options: LoginOptions, context: MountContext, *, authenticate: Authenticate | None) -> Login:
    """Return the login; REST has to authenticate its clients."""
    authenticator = context.authenticator
    assert authenticator is not None
    assert authenticate is not None
    clock = Clock()

    async def check_id_token(token: str) -> Mapping[str, object]:
        try:
            return await authenticator.id_token(token, issuer=options.issuer, audience=options.client_id)
        except Unverified as error:
            raise Refused(HTTPStatus.UNAUTHORIZED, error.reason) from error

    seal = Seal(options.client_secret, issuer=options.issuer, client_id=options.client_id, random=secrets.token_bytes)
    return Login(
        options=options,
        provider=Provider(options, monotonic=clock.monotonic),
        jar=Jar(seal=seal, is_secure=options.is_secure, now=clock.epoch),
        authenticate=authenticate,
        check_id_token=check_id_token,
        random=secrets.token_bytes,
        clock=clock,
        report=context.report,
        note_refusal=context.note_refusal,
    )
