"""What is known of a request for an operator action when it is refused."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from maestropy.server.api.rest.http import asked_actions, errors, routing
from maestropy.server.auth.roles import RestCaller, Role
from maestropy.transport.peer_identity import ANONYMOUS


@pytest.mark.parametrize(
    ("query", "role", "status", "is_dry_run"),
    [
        pytest.param(b"dryRun=All", Role.ADMIN, None, True, id="dry-run"),
        pytest.param(b"", Role.ADMIN, None, False, id="action"),
        pytest.param(b"dryRun=All", Role.READ, 403, True, id="denied-dry-run"),
        pytest.param(b"", Role.READ, 403, False, id="denied-action"),
        pytest.param(b"dry_run=All", Role.ADMIN, 400, False, id="unknown-parameter"),
        pytest.param(b"dry_run=All", Role.READ, 403, False, id="denied-before-its-parameters-are-read"),
        pytest.param(b"dryRun=None", Role.ADMIN, 400, False, id="unknown-value"),
    ],
)
async def test_dry_run_is_known_also_if_it_is_refused(
    query: bytes, role: Role, status: int | None, is_dry_run: bool
) -> None:
    called = []

    async def handler(_: Request) -> Response:
        called.append(True)
        return Response()

    client = RestCaller(identity=ANONYMOUS, role=role)
    scope: dict[str, Any] = {"type": "http", "query_string": query, "headers": [], routing.CLIENT: client}
    act = asked_actions.needs(Role.ADMIN, handler)
    if status is None:
        await act(Request(scope))
    else:
        with pytest.raises(errors.RestError) as refused:
            await act(Request(scope))
        assert refused.value.status == status
    assert bool(called) is (status is None)
    assert asked_actions.of(scope).is_dry_run is is_dry_run
