"""What is mounted beside REST: which requests it gets, and that the API in process cannot be changed by it."""

import httpx
import pytest
from starlette.responses import PlainTextResponse

from maestropy.server.runtime.mounts import PathSwitch, ReadOnly


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/console", "mounted"),
        ("/console/", "mounted"),
        ("/console/api/x", "mounted"),
        ("/consoles", "rest"),
        ("/api/console", "rest"),
        ("/", "rest"),
    ],
)
async def test_path_decides(path: str, expected: str) -> None:
    app = PathSwitch(PlainTextResponse("rest"), path="/console", mounted=PlainTextResponse("mounted"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        assert (await client.get(path)).text == expected


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_api_in_process_cannot_be_changed(method: str) -> None:
    app = ReadOnly(PlainTextResponse("changed"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        assert (await client.request(method, "/api/maestro/v1/consumers")).status_code == 405
        assert (await client.get("/api/maestro/v1/consumers")).status_code == 200
