"""Maestro in Python: server, agent, client and tracer of one protocol.

    from maestropy import AsyncMaestro, Maestro, Work, errors, targeting

The client is imported when one of its names is first used, so `import maestropy` costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maestropy.sdk import errors as errors
    from maestropy.sdk import targeting as targeting
    from maestropy.sdk.blocking import Maestro as Maestro
    from maestropy.sdk.client import AsyncMaestro as AsyncMaestro
    from maestropy.sdk.consumers import Consumer as Consumer
    from maestropy.sdk.errors import MaestroError as MaestroError
    from maestropy.sdk.observed import EventType as EventType
    from maestropy.sdk.observed import WatchEvent as WatchEvent
    from maestropy.sdk.retry import RetryPolicy as RetryPolicy
    from maestropy.sdk.work import Work as Work

__version__ = "0.1.0"

_CLIENT = {
    "AsyncMaestro": "client",
    "Consumer": "consumers",
    "EventType": "observed",
    "Maestro": "blocking",
    "MaestroError": "errors",
    "RetryPolicy": "retry",
    "WatchEvent": "observed",
    "Work": "work",
    "errors": "errors",
    "targeting": "targeting",
}
"""The public names and the modules of the client they live in."""

__all__ = [
    "AsyncMaestro",
    "Consumer",
    "EventType",
    "Maestro",
    "MaestroError",
    "RetryPolicy",
    "WatchEvent",
    "Work",
    "errors",
    "targeting",
]


def __getattr__(name: str) -> Any:
    if name not in _CLIENT:
        raise AttributeError(f"module 'maestropy' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - only those who use the client pay for it

    module = importlib.import_module(f"maestropy.sdk.{_CLIENT[name]}")
    return module if name == _CLIENT[name] else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
