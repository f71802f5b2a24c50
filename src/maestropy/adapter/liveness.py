"""Answer the liveness probes of an adapter: 503 once too many of its functions have not returned, else 200."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from maestropy.adapter import author_code


async def alive(_: Request) -> Response:
    """Answer a liveness probe: Kubernetes restarts an adapter that can handle no event any more."""
    reason = author_code.why_stuck()
    return PlainTextResponse(f"{reason or 'ok'}\n", status_code=503 if reason else 200)
