"""Rejected calls and failed responses become client errors."""

import pytest

from maestropy.sdk import errors
from maestropy.sdk._connection import error_mapping
from maestropy.transport.grpc.status import StatusCode

REQUEST = error_mapping.Operation(doing="update work c1/x", operation_id="op-1")
STALE = "failed to update resource: maestro-6: the resource version is not the latest, the latest version: 3"
FOREIGN_KEY = (
    'failed to create resource: maestro-9: Unable to create Resource: ERROR: insert or update on table "resources" '
    'violates foreign key constraint "fk_resources_consumers" (SQLSTATE 23503)'
)


def said(error: errors.MaestroError) -> str:
    """Return the text of the server: the reason, or the note beside a reason without SQL."""
    notes: list[str] = getattr(error, "__notes__", [])
    return notes[0].removeprefix("the server said: ") if notes else error.reason


@pytest.mark.parametrize(
    ("code", "text", "kind", "retryable"),
    [
        pytest.param("UNKNOWN", STALE, errors.Conflict, False, id="stale-version"),
        pytest.param(
            "UNKNOWN",
            "failed to create resource: maestro-6: This Resource already exists",
            errors.AlreadyExists,
            False,
            id="already-exists",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to update resource: maestro-6: the resource is under deletion, id: x",
            errors.Conflict,
            False,
            id="already-deleting",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to get resource: maestro-7: Resource with id='x' not found",
            errors.NotFound,
            False,
            id="not-found",
        ),
        pytest.param("UNKNOWN", FOREIGN_KEY, errors.ConsumerNotFound, False, id="unknown-consumer"),
        pytest.param(
            "UNKNOWN",
            "failed to create resource: maestro-8: the manifest bundle in the resource is invalid, x already exists",
            errors.Invalid,
            False,
            id="invalid-despite-its-message",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to decode cloudevent: failed to get clustername extension: x",
            errors.Invalid,
            False,
            id="malformed",
        ),
        pytest.param(
            "UNKNOWN", "token not authenticated", errors.Unauthorized, False, id="unauthenticated-by-go-server"
        ),
        pytest.param("UNAUTHENTICATED", "invalid token", errors.Unauthorized, False, id="unauthenticated"),
        pytest.param(
            "UNKNOWN",
            "unauthorized to publish the event from source s",
            errors.Forbidden,
            False,
            id="forbidden-by-go-server",
        ),
        pytest.param("PERMISSION_DENIED", "no", errors.Forbidden, False, id="forbidden"),
        pytest.param("UNAVAILABLE", "failed to connect to all addresses", errors.Unavailable, True, id="unreachable"),
        pytest.param(
            "UNAVAILABLE",
            "last error: Ssl handshake failed: CERTIFICATE_VERIFY_FAILED",
            errors.Unavailable,
            False,
            id="untrusted-certificate",
        ),
        pytest.param("RESOURCE_EXHAUSTED", "the server is overloaded", errors.Unavailable, True, id="overloaded"),
        pytest.param(
            "RESOURCE_EXHAUSTED", "Received message larger than max (5 vs. 4)", errors.Invalid, False, id="too-large"
        ),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", errors.Timeout, True, id="timeout"),
        pytest.param("INTERNAL", "internal error", errors.ServerError, False, id="internal"),
        pytest.param("UNKNOWN", "something new", errors.ServerError, False, id="unknown"),
        pytest.param("UNIMPLEMENTED", "unknown service", errors.ServerError, False, id="not-maestro"),
    ],
)
def test_error_of_rejected_grpc_call(code: str, text: str, kind: type[errors.MaestroError], retryable: bool) -> None:
    error = error_mapping.from_grpc(StatusCode[code], text, request=REQUEST)
    assert type(error) is kind
    assert error.is_retryable is retryable
    assert (said(error), error.operation_id) == (text, "op-1")
    assert str(error).startswith(f"cannot update work c1/x: {error.reason}")
    assert str(error).endswith("(operation id op-1)")


@pytest.mark.parametrize(
    ("status", "code", "reason", "kind", "retryable"),
    [
        pytest.param(404, "maestro-7", "Resource with id='x' not found", errors.NotFound, False, id="not-found"),
        pytest.param(404, "", "", errors.ServerError, False, id="not-maestro"),
        pytest.param(
            409, "maestro-6", "This Consumer already exists", errors.AlreadyExists, False, id="already-exists"
        ),
        pytest.param(400, "maestro-21", "bad order value 'x'", errors.Invalid, False, id="bad-request"),
        pytest.param(
            500,
            "maestro-9",
            "Unable to create Consumer: consumer.name: Invalid value: x",
            errors.Invalid,
            False,
            id="invalid-name-on-go-server",
        ),
        pytest.param(
            500,
            "maestro-9",
            "ERROR: column x does not exist (SQLSTATE 42703)",
            errors.Invalid,
            False,
            id="invalid-column-on-go-server",
        ),
        pytest.param(
            403,
            "maestro-4",
            'update or delete on table "consumers" violates "fk_resources_consumers"',
            errors.Conflict,
            False,
            id="consumer-in-use",
        ),
        pytest.param(
            401,
            "maestro-15",
            "Account authentication could not be verified",
            errors.Unauthorized,
            False,
            id="not-authenticated",
        ),
        pytest.param(403, "maestro-11", "Account is unauthorized", errors.Forbidden, False, id="forbidden"),
        pytest.param(500, "maestro-9", "Unspecified error", errors.ServerError, True, id="server-error"),
        pytest.param(503, "maestro-9", "The database is not available", errors.Unavailable, True, id="unavailable"),
        pytest.param(502, "", "", errors.Unavailable, True, id="bad-gateway"),
        pytest.param(504, "", "", errors.Timeout, True, id="gateway-timeout"),
        pytest.param(429, "", "", errors.Unavailable, True, id="too-many-requests"),
        pytest.param(418, "", "", errors.ServerError, False, id="unknown-status"),
    ],
)
def test_error_of_http_response(
    status: int, code: str, reason: str, kind: type[errors.MaestroError], retryable: bool
) -> None:
    error = error_mapping.from_http(status, code=code, reason=reason, request=REQUEST)
    assert type(error) is kind
    assert error.is_retryable is retryable
    assert said(error) == (reason or f"HTTP {status}")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param(
            "[SSL: WRONG_VERSION_NUMBER] wrong version number", "the server does not use TLS", id="plain-http"
        ),
        pytest.param("[SSL: CERTIFICATE_VERIFY_FAILED] expired", "check the CA file", id="bad-certificate"),
    ],
)
def test_tls_failure_is_not_retried(text: str, advice: str) -> None:
    error = error_mapping.from_no_response(text, request=REQUEST, was_sent=False, in_time=True)
    assert isinstance(error, errors.Unavailable)
    assert not error.is_retryable
    assert advice in error.advice


def test_advice_depends_on_the_operation() -> None:
    not_maestro = error_mapping.from_http(404, code="", reason="", request=REQUEST)
    assert isinstance(not_maestro, errors.ServerError)
    assert "leads to Maestro" in not_maestro.advice
    reason = "Account is unauthorized to perform this action: it needs the role admin, and the token has write"
    forbidden = error_mapping.from_http(403, code="maestro-4", reason=reason, request=REQUEST)
    assert isinstance(forbidden, errors.Forbidden)
    assert "use a token of that role" in forbidden.advice
    rejected = error_mapping.from_http(401, code="maestro-15", reason="no token", request=REQUEST)
    assert isinstance(rejected, errors.Unauthorized)
    assert "--token-file, MAESTRO_TOKEN_FILE" in rejected.advice
    reason = "The database is read-only at the moment; try again in 5 seconds"
    read_only = error_mapping.from_http(503, code="maestro-9", reason=reason, request=REQUEST)
    assert isinstance(read_only, errors.Unavailable)
    assert read_only.is_retryable
    assert "takes no writes" in read_only.advice
    reason = "This Consumer already exists"
    error = error_mapping.from_http(
        409, code="maestro-6", reason=reason, request=error_mapping.Operation(doing="create consumer")
    )
    assert isinstance(error, errors.AlreadyExists)
    assert "ensure()" in error.advice


def test_predicates_search_the_cause_chain() -> None:
    outer = RuntimeError("outer")
    outer.__cause__ = errors.ConsumerNotFound("no c1")
    assert errors.is_not_found(outer)
    assert not errors.is_conflict(outer)
    assert not errors.is_retryable(outer)
    assert errors.is_retryable(errors.Unavailable("gone"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param(FOREIGN_KEY, "the consumer does not exist", id="unknown-consumer"),
        pytest.param(
            'Unable to delete Consumer: ERROR: update or delete on table "consumers" violates foreign key constraint '
            '"fk_resources_consumers" on table "resources" (SQLSTATE 23503)',
            "it still has works",
            id="consumer-in-use",
        ),
        pytest.param(
            "Unable to list Resource: ERROR: column x does not exist (SQLSTATE 42703)",
            "Unable to list Resource: column x does not exist",
            id="column",
        ),
    ],
)
def test_no_sql_in_messages_but_in_notes(text: str, reason: str) -> None:
    error = error_mapping.from_http(500, code="maestro-9", reason=text, request=REQUEST)
    assert error.reason == reason
    assert error.__notes__ == [f"the server said: {text}"]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("no response from http://127.0.0.1:8090/: illegal request line", "this is not a Maestro REST endpoint; "),
        (
            (
                "failed to connect to all addresses; last error: INTERNAL: ipv4:127.0.0.1:8000: Failed parsing HTTP/2 "
                "(Expected SETTINGS frame as the first frame, got frame type 80)"
            ),
            "this is not a Maestro gRPC endpoint; ",
        ),
    ],
    ids=["rest", "grpc"],
)
def test_swapped_ports_are_named(text: str, advice: str) -> None:
    request = error_mapping.Operation(doing="list works")
    error = error_mapping.from_no_response(text, request=request, was_sent=True, in_time=True)
    assert isinstance(error, errors.Unavailable)
    assert error.advice.startswith(advice)


@pytest.mark.parametrize(("scheme", "is_advised"), [("http", True), ("https", False)])
def test_server_that_closes_a_plain_connection_may_use_tls(scheme: str, *, is_advised: bool) -> None:
    text = f"no response from {scheme}://127.0.0.1:8000/: the server closed the connection"
    error = error_mapping.from_no_response(text, request=REQUEST, was_sent=True, in_time=True)
    assert isinstance(error, errors.Unavailable)
    assert ("write https:// in the address" in error.advice) is is_advised


PLAIN = error_mapping.Credentials()
NO_CERTIFICATE = error_mapping.Credentials(uses_tls=True)
CERTIFICATE = error_mapping.Credentials(uses_tls=True, client_cert_file="tls/c.crt")
CLOSED = "no response from https://maestro.example/: the server closed the connection"
REQUIRED = "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required (_ssl.c:2580)"
UNKNOWN_CA = "[SSL: TLSV1_ALERT_UNKNOWN_CA] tlsv1 alert unknown ca (_ssl.c:2580)"
BAD = "Ssl handshake failed: SSLV3_ALERT_BAD_CERTIFICATE"
HANDSHAKE = "[SSL: SSLV3_ALERT_HANDSHAKE_FAILURE] ssl/tls alert handshake failure (_ssl.c:1010)"
UNTRUSTED_SERVER = "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate"


@pytest.mark.parametrize(
    ("text", "credentials", "advice", "retryable"),
    [
        pytest.param(REQUIRED, NO_CERTIFICATE, "asks for a client certificate: give client_cert_file", False, id="no"),
        pytest.param(CLOSED, NO_CERTIFICATE, "may ask for a client certificate: give client_cert_file", True, id="end"),
        pytest.param("Socket closed", NO_CERTIFICATE, "may ask for a client certificate", True, id="end-of-grpc"),
        pytest.param(HANDSHAKE, NO_CERTIFICATE, "may ask for a client certificate", False, id="tls-1.2"),
        pytest.param(
            UNKNOWN_CA, CERTIFICATE, "not trust the issuer of the client certificate tls/c.crt", False, id="ca"
        ),
        pytest.param(BAD, CERTIFICATE, "rejects the client certificate tls/c.crt", False, id="rejected"),
        pytest.param(
            CLOSED, CERTIFICATE, "that it trusts the issuer of the client certificate tls/c.crt", True, id="-"
        ),
        pytest.param(CLOSED, PLAIN, "check that the server runs and that the address is right", True, id="plain-text"),
        pytest.param(UNTRUSTED_SERVER, NO_CERTIFICATE, "check the CA file", False, id="untrusted-server"),
        pytest.param(UNTRUSTED_SERVER, CERTIFICATE, "check the CA file", False, id="untrusted-server-of-mtls"),
    ],
)
def test_error_about_the_client_certificate_names_the_option_or_the_file(
    text: str, credentials: error_mapping.Credentials, advice: str, *, retryable: bool
) -> None:
    no_response = error_mapping.from_no_response(
        text, request=REQUEST, was_sent=True, in_time=True, credentials=credentials
    )
    rejected = error_mapping.from_grpc(StatusCode.UNAVAILABLE, text, request=REQUEST, credentials=credentials)
    for error in (no_response, rejected):
        assert isinstance(error, errors.Unavailable)
        assert advice in error.advice
        assert error.is_retryable is retryable
