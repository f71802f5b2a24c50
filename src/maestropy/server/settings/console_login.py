"""Settings of the login of the console by an OpenID provider, and the checks of them. Values only; no file is read."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from maestropy.flags import SettingsError, flag
from maestropy.server.settings.listeners import HttpSettings, RestAuthSettings

CALLBACK: Final = "/console/login/callback"
"""Where a provider leads the browser back to."""
_LEAST_SECRET: Final = 16
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleLoginSettings:
    """Console login"""

    issuer_url: str = field(default="", metadata=flag("--console-oidc-issuer-url"))
    """Issuer of the OpenID provider at which users of the console sign in, such as https://login.example/realms/sre.
    Its discovery document is read from there. Needs --enable-console and --rest-authn-type=jwt with the keys of the
    same provider: its tokens are checked as those of REST. Absent: users paste a token."""

    client_id: str = field(default="", metadata=flag("--console-oidc-client-id"))
    """The client that the provider knows the console by: a confidential one with the code flow."""

    client_secret_file: Path | None = field(default=None, metadata=flag("--console-oidc-client-secret-file"))
    """File with the secret of that client, 16 characters or more; read at start. The key of the session cookies is
    derived from it, so all instances need the same, and a new secret ends all sessions."""

    redirect_url: str = field(default="", metadata=flag("--console-oidc-redirect-url"))
    """Address of the console for browsers with /console/login/callback, as registered at the provider, such as
    https://maestro.example/console/login/callback. Users have to open the console at this host."""

    scopes: tuple[str, ...] = field(default=("openid",), metadata=flag("--console-oidc-scopes"))
    """Scopes that are asked for, separated by commas; `openid` is needed. Many providers give a refresh token, with
    which a session outlives its token, only for `offline_access`."""

    roles_from: Literal["access", "id"] = field(default="access", metadata=flag("--console-oidc-token"))
    """Which token of the provider has the roles: `access`, if that is a JWT for --jwt-audience, or `id`, whose audience
    is --console-oidc-client-id."""


def problems(login: ConsoleLoginSettings, *, http: HttpSettings, rest: RestAuthSettings) -> Iterator[str]:
    """Yield what does not fit together, each with its remedy."""
    needed = {
        "--console-oidc-issuer-url": login.issuer_url,
        "--console-oidc-client-id": login.client_id,
        "--console-oidc-client-secret-file": login.client_secret_file,
        "--console-oidc-redirect-url": login.redirect_url,
    }
    missing = [name for name, value in needed.items() if not value]
    if len(missing) == len(needed):
        return
    if missing:
        yield f"the login of the console by a provider also needs {' and '.join(missing)}"
    if not http.enable_console:
        yield "--console-oidc-issuer-url needs the console; give --enable-console"
    if rest.authn_type != "jwt":
        yield (
            "--console-oidc-issuer-url needs --rest-authn-type=jwt with the keys of the provider: without it REST "
            "shows everything to everybody, and a login of the console would protect nothing"
        )
    for name, address in (
        ("--console-oidc-issuer-url", login.issuer_url),
        ("--console-oidc-redirect-url", login.redirect_url),
    ):
        yield from _address_problems(name, address)
    yield from _token_problems(login, rest=rest)


def _address_problems(name: str, address: str) -> Iterator[str]:
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.query or parts.fragment or parts.username is not None:
        yield f"{name}={address}: write an address without query, fragment and password, such as https://login.example"
    elif parts.scheme != "https" and not (parts.scheme == "http" and host in _LOOPBACK):
        yield f"{name}={address}: tokens would be sent in the clear; use https (http only for localhost)"
    elif name == "--console-oidc-redirect-url" and not parts.path.endswith(CALLBACK):
        yield f"{name}={address}: it has to end with {CALLBACK}"


def _token_problems(login: ConsoleLoginSettings, *, rest: RestAuthSettings) -> Iterator[str]:
    if "openid" not in login.scopes:
        yield "--console-oidc-scopes: openid is missing; without it a provider gives no ID token"
    if rest.jwt_issuer is not None and rest.jwt_issuer != login.issuer_url:
        yield (
            f"--jwt-issuer={rest.jwt_issuer} is not --console-oidc-issuer-url={login.issuer_url}: every token of the "
            "login would be rejected; give both the same text"
        )
    if login.roles_from == "id" and rest.jwt_audience not in (None, login.client_id):
        yield (
            f"--console-oidc-token=id: the audience of an ID token is {login.client_id}, and --jwt-audience="
            f"{rest.jwt_audience} rejects it; use --console-oidc-token=access, or the client as audience"
        )


def read_secret(file: Path) -> str:
    """Return the client secret of a file; raises SettingsError."""
    name = f"--console-oidc-client-secret-file={file}"
    try:
        secret = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise SettingsError(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{name} is no text of ASCII characters; write the client secret of the provider"
        ) from error
    if len(secret) < _LEAST_SECRET or any(sign.isspace() for sign in secret):
        raise SettingsError(
            f"{name} has to hold one secret of {_LEAST_SECRET} characters or more: it encrypts the cookies of sessions"
        )
    return secret
