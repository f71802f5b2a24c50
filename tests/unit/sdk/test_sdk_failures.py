"""What refusals mean."""

import pytest

from maestropy.sdk import errors, failures
from maestropy.transport.status import Code

REQUEST = failures.Request(doing="update work c1/x", operation_id="op-1")
STALE = "failed to update resource: maestro-6: the resource version is not the latest, the latest version: 3"
FOREIGN_KEY = (
    'failed to create resource: maestro-9: Unable to create Resource: ERROR: insert or update on table "resources" '
    'violates foreign key constraint "fk_resources_consumers" (SQLSTATE 23503)'
)


@pytest.mark.parametrize(
    ("code", "text", "kind", "retryable"),
    [
        pytest.param("UNKNOWN", STALE, errors.Conflict, False, id="old-version"),
        pytest.param(
            "UNKNOWN",
            "failed to create resource: maestro-6: This Resource already exists",
            errors.AlreadyExists,
            False,
            id="exists",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to update resource: maestro-6: the resource is under deletion, id: x",
            errors.Conflict,
            False,
            id="going-away",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to get resource: maestro-7: Resource with id='x' not found",
            errors.NotFound,
            False,
            id="not-there",
        ),
        pytest.param("UNKNOWN", FOREIGN_KEY, errors.ConsumerNotFound, False, id="unknown-consumer"),
        pytest.param(
            "UNKNOWN",
            "failed to create resource: maestro-8: the manifest bundle in the resource is invalid, x already exists",
            errors.Invalid,
            False,
            id="invalid-whatever-its-words",
        ),
        pytest.param(
            "UNKNOWN",
            "failed to decode cloudevent: failed to get clustername extension: x",
            errors.Invalid,
            False,
            id="malformed",
        ),
        pytest.param("UNKNOWN", "token not authenticated", errors.Unauthorized, False, id="token-of-a-go-server"),
        pytest.param("UNAUTHENTICATED", "invalid token", errors.Unauthorized, False, id="no-token"),
        pytest.param(
            "UNKNOWN", "unauthorized to publish the event from source s", errors.Forbidden, False, id="denied-by-go"
        ),
        pytest.param("PERMISSION_DENIED", "no", errors.Forbidden, False, id="denied"),
        pytest.param("UNAVAILABLE", "failed to connect to all addresses", errors.Unavailable, True, id="nobody-there"),
        pytest.param(
            "UNAVAILABLE",
            "last error: Ssl handshake failed: CERTIFICATE_VERIFY_FAILED",
            errors.Unavailable,
            False,
            id="not-to-be-trusted",
        ),
        pytest.param("RESOURCE_EXHAUSTED", "the server is overloaded", errors.Unavailable, True, id="overloaded"),
        pytest.param(
            "RESOURCE_EXHAUSTED", "Received message larger than max (5 vs. 4)", errors.Invalid, False, id="too-large"
        ),
        pytest.param("DEADLINE_EXCEEDED", "Deadline Exceeded", errors.Timeout, True, id="late"),
        pytest.param("INTERNAL", "internal error", errors.ServerError, False, id="internal"),
        pytest.param("UNKNOWN", "something new", errors.ServerError, False, id="unknown"),
        pytest.param("UNIMPLEMENTED", "unknown service", errors.ServerError, False, id="another-service"),
    ],
)
def test_grpc(code: str, text: str, kind: type[errors.MaestroError], retryable: bool) -> None:
    found = failures.from_grpc(Code[code], text, request=REQUEST)
    assert type(found) is kind
    assert found.is_retryable is retryable
    assert (found.reason, found.operation_id) == (text, "op-1")
    assert str(found).startswith(f"cannot update work c1/x: {text}")
    assert str(found).endswith("(operation id op-1)")


@pytest.mark.parametrize(
    ("status", "code", "reason", "kind", "retryable"),
    [
        pytest.param(404, "maestro-7", "Resource with id='x' not found", errors.NotFound, False, id="not-there"),
        pytest.param(404, "", "", errors.NotFound, False, id="not-there-and-no-body"),
        pytest.param(409, "maestro-6", "This Consumer already exists", errors.AlreadyExists, False, id="exists"),
        pytest.param(400, "maestro-21", "bad order value 'x'", errors.Invalid, False, id="bad-request"),
        pytest.param(
            500,
            "maestro-9",
            "Unable to create Consumer: consumer.name: Invalid value: x",
            errors.Invalid,
            False,
            id="bad-name-on-a-go-server",
        ),
        pytest.param(
            500,
            "maestro-9",
            "ERROR: column x does not exist (SQLSTATE 42703)",
            errors.Invalid,
            False,
            id="bad-column-on-a-go-server",
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
            id="who-are-you",
        ),
        pytest.param(403, "maestro-11", "Account is unauthorized", errors.Forbidden, False, id="denied"),
        pytest.param(500, "maestro-9", "Unspecified error", errors.ServerError, True, id="failed"),
        pytest.param(503, "maestro-9", "The database is not available", errors.Unavailable, True, id="not-now"),
        pytest.param(502, "", "", errors.Unavailable, True, id="gateway"),
        pytest.param(504, "", "", errors.Timeout, True, id="gateway-waited"),
        pytest.param(429, "", "", errors.Unavailable, True, id="too-often"),
        pytest.param(418, "", "", errors.ServerError, False, id="teapot"),
    ],
)
def test_http(status: int, code: str, reason: str, kind: type[errors.MaestroError], retryable: bool) -> None:
    found = failures.from_http(status, code=code, reason=reason, request=REQUEST)
    assert type(found) is kind
    assert found.is_retryable is retryable
    assert found.reason == (reason or f"HTTP {status}")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        pytest.param("[SSL: WRONG_VERSION_NUMBER] wrong version number", "no TLS is spoken there", id="plain-http"),
        pytest.param("[SSL: CERTIFICATE_VERIFY_FAILED] expired", "check the CA file", id="bad-certificate"),
    ],
)
def test_tls_that_cannot_work_is_not_tried_again(text: str, advice: str) -> None:
    found = failures.from_silence(text, request=REQUEST, was_sent=False, in_time=True)
    assert isinstance(found, errors.Unavailable)
    assert not found.is_retryable
    assert advice in found.advice


def test_advice_fits_what_was_attempted() -> None:
    stranger = failures.from_http(404, code="", reason="", request=REQUEST)
    assert isinstance(stranger, errors.NotFound)
    assert "leads to Maestro" in stranger.advice
    reason = "This Consumer already exists"
    found = failures.from_http(409, code="maestro-6", reason=reason, request=failures.Request(doing="create consumer"))
    assert isinstance(found, errors.AlreadyExists)
    assert "ensure()" in found.advice


def test_predicates_look_through_the_causes() -> None:
    outer = RuntimeError("mine")
    outer.__cause__ = errors.ConsumerNotFound("no c1")
    assert errors.is_not_found(outer)
    assert not errors.is_conflict(outer)
    assert not errors.is_retryable(outer)
    assert errors.is_retryable(errors.Unavailable("gone"))
