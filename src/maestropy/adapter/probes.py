"""Answer the probes and the scrapes of an adapter that receives its events from a broker.

| path | response |
|---|---|
| `/healthz` | 200 while the process handles events; 503 once too many of the adapter's functions have not returned |
| `/readyz` | 200 while the broker is connected; 503 before that, during an outage, and once the adapter is stopping |
| `/metrics` | the metrics `hyperfleet_adapter_*`, on a port of its own |

Nothing can be changed here, so callers need no token.
"""

from collections.abc import Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from maestropy.adapter import liveness
from maestropy.adapter.metrics import AdapterMetrics
from maestropy.transport.http import metrics_text

SHUTTING_DOWN = "server is shutting down"


class AdapterProbes:
    """The state that probes see, and the application that answers them."""

    def __init__(self) -> None:
        self._is_stopping = False
        self._is_connected: Callable[[], bool] = lambda: False
        self.app = Starlette(
            routes=[Route("/healthz", liveness.alive, methods=["GET"]), Route("/readyz", self._ready, methods=["GET"])]
        )

    def connected(self, is_connected: Callable[[], bool]) -> None:
        """Take over how to find out whether the broker is connected."""
        self._is_connected = is_connected

    def stopping(self) -> None:
        """Say that the adapter accepts no more events."""
        self._is_stopping = True

    async def _ready(self, _: Request) -> Response:
        if self._is_stopping:
            return JSONResponse({"status": "error", "message": SHUTTING_DOWN}, status_code=503)
        is_ready = self._is_connected()
        outcome = "ok" if is_ready else "error"
        # The names of HyperFleet's own probe. A process with a wrong configuration does not start.
        checks = {"config": "ok", "broker": outcome}
        return JSONResponse({"status": outcome, "checks": checks}, status_code=200 if is_ready else 503)


def metrics_app(metrics: AdapterMetrics) -> Starlette:
    """Return the application that answers scrapes."""

    async def show(_: Request) -> Response:
        return Response(metrics.text(), media_type=metrics_text.PLAIN_TEXT)

    return Starlette(routes=[Route("/metrics", show, methods=["GET"])])
