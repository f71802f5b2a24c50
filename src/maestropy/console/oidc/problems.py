"""What can go wrong when a user signs in, each with its cause and its remedy, and the page that says it. Pure.

A page has no text of the provider and none of the address: anybody can write those.
"""

from dataclasses import dataclass
from html import escape
from http import HTTPStatus
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Why nobody is signed in."""

    title: str
    cause: str
    remedy: str
    status: HTTPStatus = HTTPStatus.BAD_REQUEST
    is_temporary: bool = False
    """Whether it ends by itself, so that a session goes on meanwhile."""

    @property
    def text(self) -> str:
        """One line of it."""
        return f"{self.title}. {self.cause} {self.remedy}"


class LoginFailed(Exception):
    """Nobody is signed in."""

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(problem.title)
        self.problem = problem
        self.detail = detail
        """More for the log of the server; no secrets."""

    @property
    def told(self) -> str:
        """What an operator reads."""
        return f"{self.problem.title}: {self.detail}" if self.detail else self.problem.title


_AGAIN: Final = "Open the console and sign in again."
_OPERATOR: Final = "Tell whoever runs this server: its log has more."

OTHER_BROWSER: Final = Problem(
    title="This sign-in does not belong to this browser",
    cause="It was begun in another browser or at another address of the console, took more than ten minutes, or was "
    "finished before. If you did not begin it, somebody may have sent you the link.",
    remedy=_AGAIN,
)
OTHER_ISSUER: Final = Problem(
    title="The answer comes from another provider",
    cause="It does not name the provider that you were sent to.",
    remedy=f"{_AGAIN} {_OPERATOR}",
)
NO_CODE: Final = Problem(
    title="The answer of the provider is incomplete",
    cause="It has neither a code nor an error.",
    remedy=f"{_AGAIN} {_OPERATOR}",
)
CODE_REFUSED: Final = Problem(
    title="The provider did not accept the sign-in",
    cause="Its code has expired or was used before.",
    remedy=_AGAIN,
)
CLIENT_REFUSED: Final = Problem(
    title="The provider does not accept this server",
    cause="Client ID or client secret are wrong, or the client may not use this flow.",
    remedy=f"{_OPERATOR} It has to check --console-oidc-client-id and --console-oidc-client-secret-file.",
    status=HTTPStatus.BAD_GATEWAY,
)
UNREACHABLE: Final = Problem(
    title="The provider cannot be reached",
    cause="This server got no usable answer from it.",
    remedy="Try again in a minute. If it stays, tell whoever runs this server: --console-oidc-issuer-url, DNS, "
    "firewall and certificates are to be checked.",
    status=HTTPStatus.BAD_GATEWAY,
    is_temporary=True,
)  # fmt: skip
WRONG_DISCOVERY: Final = Problem(
    title="The discovery document of the provider cannot be used",
    cause="It names another issuer, lacks an endpoint, names one without https, or does not allow PKCE with S256.",
    remedy=f"{_OPERATOR} It has to check --console-oidc-issuer-url.",
    status=HTTPStatus.BAD_GATEWAY,
)
WRONG_NONCE: Final = Problem(
    title="The ID token belongs to another sign-in",
    cause="Its nonce is not the one that this browser began with.",
    remedy=_AGAIN,
)
OTHER_SUBJECT: Final = Problem(
    title="The tokens of the provider are of two users",
    cause="The access token is of another user than the ID token.",
    remedy=f"{_AGAIN} {_OPERATOR}",
    status=HTTPStatus.UNAUTHORIZED,
)
OTHER_TYPE: Final = Problem(
    title="The provider gave a token of another type",
    cause="The console uses tokens of the type Bearer only.",
    remedy=f"{_OPERATOR} It has to let the provider issue Bearer tokens for the client of the console.",
    status=HTTPStatus.BAD_GATEWAY,
)
NO_TOKEN: Final = Problem(
    title="The provider gave no token",
    cause="Its answer lacks the ID token or the token that --console-oidc-token names.",
    remedy=f"{_OPERATOR} It has to check --console-oidc-scopes and --console-oidc-token.",
    status=HTTPStatus.BAD_GATEWAY,
)
TOO_LARGE: Final = Problem(
    title="The tokens of the provider are too large",
    cause="They do not fit into the cookies of a session, which hold about eleven kilobytes.",
    remedy="Let the provider put fewer claims, such as groups, into the token.",
    status=HTTPStatus.BAD_GATEWAY,
)
SESSION_ENDED: Final = Problem(
    title="Your session has ended",
    cause="The provider does not extend it any more.",
    remedy="Sign in again.",
    status=HTTPStatus.UNAUTHORIZED,
)

_OF_PROVIDER: Final = {
    "access_denied": ("You did not allow the sign-in, or may not use this client.", _AGAIN),
    "login_required": ("You have to sign in at the provider.", _AGAIN),
    "interaction_required": ("The provider wants to ask you something.", _AGAIN),
    "consent_required": ("The provider needs your consent.", _AGAIN),
    "account_selection_required": ("You have to choose an account.", _AGAIN),
    "temporarily_unavailable": ("It is overloaded or in maintenance.", "Try again in a minute."),
    "server_error": ("It had an error of its own.", "Try again in a minute."),
    "invalid_scope": ("It does not know a scope.", f"{_OPERATOR} It has to check --console-oidc-scopes."),
    "unauthorized_client": ("The client may not use this flow.", f"{_OPERATOR} The client needs the code flow."),
    "invalid_request": ("It does not accept the request.", f"{_OPERATOR} The redirect URL has to be registered."),
}
_OF_TOKENS: Final = (
    ("key that is not known", "The provider may have new keys: try again in a minute. If not, check --jwks-url."),
    ("no signing keys", "Try again in a minute. If it stays, the server cannot read --jwks-url or --jwks-file."),
    ("not valid yet", "The clocks of server and provider differ by more than 30 s: both need a time service."),
    ("has expired", "Sign in again. If it stays, the clocks of server and provider differ: both need a time service."),
    ("another audience", "--jwt-audience has to be the audience of this token; see --console-oidc-token."),
    ("another issuer", "--jwt-issuer has to be the issuer of the provider."),
    ("algorithm", "--jwt-algorithms has to name the algorithm of the provider."),
    ("malformed", "It is no JWT: use --console-oidc-token=id, or let the provider issue JWTs as access tokens."),
    ("lacks the claim", "The provider has to put this claim into the token."),
    ("role read", "Ask for a role of --jwt-role-read, --jwt-role-write or --jwt-role-admin; then sign in again."),
)  # fmt: skip

_TEMPORARY: Final = ("key that is not known", "no signing keys")
"""The keys of the provider are read again, but not for every token with an unknown one."""


def of_provider(error: str) -> Problem:
    """Return what an error code of the provider means."""
    cause, remedy = _OF_PROVIDER.get(error, ("It gave an error that has no description here.", _OPERATOR))
    return Problem(title="The provider refused the sign-in", cause=cause, remedy=remedy)


def of_token(reason: str, *, status: HTTPStatus = HTTPStatus.UNAUTHORIZED) -> Problem:
    """Return why a token of the provider is not accepted here; `reason` is a text of this server."""
    remedy = next((remedy for words, remedy in _OF_TOKENS if words in reason), _OPERATOR)
    is_temporary = any(words in reason for words in _TEMPORARY)
    return Problem(
        title="The token of the provider is not accepted",
        cause=f"{reason}.",
        remedy=remedy,
        status=HTTPStatus.SERVICE_UNAVAILABLE if is_temporary else status,
        is_temporary=is_temporary,
    )


def page(problem: Problem, *, console_url: str) -> str:
    """Return the page; it is served beside the files of the console."""
    return f"""<!doctype html>
<html lang="en" data-ready="problem">
<head>
<meta charset="utf-8">
<title>{escape(problem.title)} · Maestro</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="../static/icon.svg">
<link rel="stylesheet" href="../static/console.css">
</head>
<body>
<main class="sign-in">
<h1>{escape(problem.title)}</h1>
<p>{escape(problem.cause.rstrip(".") + ".")}</p>
<p>{escape(problem.remedy)}</p>
<p><a href="{escape(console_url)}">Back to the console</a></p>
</main>
</body>
</html>
"""
