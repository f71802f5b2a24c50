"""The rules of the authorization-code flow: what is sent to the provider, and which answer is taken. Pure.

OpenID Connect Core 1.0, PKCE (RFC 7636) with S256, and the issuer in the answer (RFC 9207).
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from maestropy.console import sessions
from maestropy.console.oidc import problems
from maestropy.console.oidc.problems import LoginFailed

ATTEMPT_SECONDS: Final = 600.0
CALLBACK: Final = "login/callback"
_LONGEST_CODE: Final = 8192
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginOptions:
    """The provider, and how the console is known to it."""

    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    redirect_url: str
    """The address of the console with `login/callback`."""
    scopes: tuple[str, ...] = ("openid",)
    roles_from: Literal["access", "id"] = "access"
    """The token that is checked as REST checks it."""

    @property
    def console_url(self) -> str:
        """Where browsers open the console; the only address that a login or logout ever leads to."""
        return self.redirect_url.removesuffix(CALLBACK)

    @property
    def origin(self) -> str:
        """The origin of the console."""
        parts = urlsplit(self.redirect_url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def is_secure(self) -> bool:
        """Whether browsers use TLS; if not, they are on the same computer."""
        return self.redirect_url.startswith("https:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What the discovery document of the provider says."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    end_session_endpoint: str = ""
    revocation_endpoint: str = ""
    sends_secret_in_body: bool = False
    names_itself: bool = False
    """Whether an answer without the issuer is not the provider's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One sign-in that a browser has begun."""

    state: str
    nonce: str
    verifier: str
    expires: float


def parse_metadata(document: object, *, issuer: str) -> Metadata:
    """Return the parts of a discovery document that are used; raises `LoginFailed`."""
    if not isinstance(document, dict):
        raise LoginFailed(problems.WRONG_DISCOVERY, "the document is no JSON object")
    # Exactly: another issuer could pass its own answers for those of this one.
    if document.get("issuer") != issuer:
        raise LoginFailed(
            problems.WRONG_DISCOVERY, f"the document names the issuer {str(document.get('issuer'))[:200]!r}"
        )
    methods = document.get("code_challenge_methods_supported")
    if isinstance(methods, list) and "S256" not in methods:
        raise LoginFailed(problems.WRONG_DISCOVERY, "code_challenge_methods_supported lacks S256")
    secrets = document.get("token_endpoint_auth_methods_supported")
    return Metadata(
        issuer=issuer,
        authorization_endpoint=_endpoint(document, "authorization_endpoint"),
        token_endpoint=_endpoint(document, "token_endpoint"),
        end_session_endpoint=_endpoint(document, "end_session_endpoint", is_needed=False),
        revocation_endpoint=_endpoint(document, "revocation_endpoint", is_needed=False),
        sends_secret_in_body=isinstance(secrets, list) and "client_secret_basic" not in secrets,
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
    )


def _endpoint(document: Mapping[str, Any], name: str, *, is_needed: bool = True) -> str:
    address = document.get(name)
    if address is None and not is_needed:
        return ""
    try:
        parts = urlsplit(address if isinstance(address, str) else "")
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    except ValueError:
        is_safe = False
    # A line break would end a header or a line of a log; no address has one.
    if not is_safe or not all("!" <= sign <= "~" for sign in str(address)):
        raise LoginFailed(problems.WRONG_DISCOVERY, f"{name} is absent or not an https address")
    return str(address)


def begin(random: Callable[[int], bytes], *, now: float) -> Attempt:
    """Return a new attempt."""
    state, nonce, verifier = (_text(random(32)) for _ in range(3))
    return Attempt(state=state, nonce=nonce, verifier=verifier, expires=now + ATTEMPT_SECONDS)


def authorization_url(metadata: Metadata, options: LoginOptions, attempt: Attempt) -> str:
    """Return where the browser goes to sign in."""
    return _with_query(
        metadata.authorization_endpoint,
        {
            "response_type": "code",
            "client_id": options.client_id,
            "redirect_uri": options.redirect_url,
            "scope": " ".join(options.scopes),
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": _text(hashlib.sha256(attempt.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        },
    )


def sign_out_url(metadata: Metadata, options: LoginOptions) -> str:
    """Return where the browser goes to sign out; empty if the provider offers nothing. There is no token in it."""
    if not metadata.end_session_endpoint:
        return ""
    query = {"client_id": options.client_id, "post_logout_redirect_uri": options.console_url}
    return _with_query(metadata.end_session_endpoint, query)


def check_attempt(answer: Mapping[str, str], attempt: Attempt | None, *, now: float) -> Attempt:
    """Return the attempt of this browser that an answer belongs to; raises `LoginFailed`."""
    if attempt is None or not hmac.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
        raise LoginFailed(problems.OTHER_BROWSER)
    if now > attempt.expires:
        raise LoginFailed(problems.OTHER_BROWSER)
    return attempt


def accepted_code(answer: Mapping[str, str], *, metadata: Metadata) -> str:
    """Return the code of an answer; raises `LoginFailed`."""
    issuer = answer.get("iss")
    if (metadata.names_itself or issuer is not None) and issuer != metadata.issuer:
        raise LoginFailed(problems.OTHER_ISSUER)
    error = answer.get("error")
    if error:
        description = answer.get("error_description", "")
        raise LoginFailed(problems.of_provider(error), f"error={error[:80]!r} description={description[:300]!r}")
    code = answer.get("code", "")
    if not code or len(code) > _LONGEST_CODE:
        raise LoginFailed(problems.NO_CODE)
    return code


def check_id_token(claims: Mapping[str, object], attempt: Attempt, *, client_id: str) -> None:
    """Raise `LoginFailed` unless verified claims belong to the attempt and the client."""
    nonce = claims.get("nonce")
    if not isinstance(nonce, str) or not hmac.compare_digest(nonce.encode(), attempt.nonce.encode()):
        raise LoginFailed(problems.WRONG_NONCE)
    audience = claims.get("aud")
    authorized = claims.get("azp")
    is_shared = isinstance(audience, list) and len(audience) > 1
    if (authorized is not None or is_shared) and authorized != client_id:
        raise LoginFailed(problems.of_token("the ID token is meant for another audience"))


def check_subject(
    claims: Mapping[str, object], token: str, *, problem: problems.Problem = problems.OTHER_SUBJECT
) -> None:
    """Raise `LoginFailed` if a verified token is of another user than the ID token, and says so."""
    subject = sessions.token_claims(token).get("sub")
    if subject is not None and subject != claims.get("sub"):
        raise LoginFailed(problem, "the access token is of another user than the ID token")


def _with_query(address: str, query: Mapping[str, str]) -> str:
    parts = urlsplit(address)
    return urlunsplit(parts._replace(query=urlencode([*parse_qsl(parts.query), *query.items()]), fragment=""))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
