"""The nine stages of a spec request, from the source to the cluster and back. Names only."""

from enum import IntEnum
from typing import Final


class Stage(IntEnum):
    """A step that every spec request passes."""

    SERVER_RECEIVES = 1
    SERVER_PUBLISHES = 2
    AGENT_RECEIVES = 3
    AGENT_HANDLES = 4
    AGENT_PUBLISHES_STATUS = 5
    SERVER_RECEIVES_STATUS = 6
    SERVER_HANDLES_STATUS = 7
    SERVER_BROADCASTS_STATUS = 8
    SERVER_SENDS_STATUS = 9


AGENT_STAGES: Final = frozenset({Stage.AGENT_RECEIVES, Stage.AGENT_HANDLES, Stage.AGENT_PUBLISHES_STATUS})
STAGES: Final[dict[int, tuple[str, str, str]]] = {
    1: ("svr-receive", "server receives spec", "Maestro server does not receive the spec request"),
    2: ("svr-publish", "server publishes", "Maestro server does not publish the spec request"),
    3: ("agent-receive", "agent receives", "Maestro agent does not receive the spec request"),
    4: ("agent-handle", "agent handles", "Maestro agent does not handle the spec request"),
    5: ("agent-publish", "agent publishes status", "Maestro agent does not publish the status update request"),
    6: ("svr-status-receive", "server receives status", "Maestro server does not receive the status update request"),
    7: ("svr-status-handle", "server handles status", "Maestro server does not handle the status update request"),
    8: ("svr-broadcast", "server broadcasts", "Maestro server does not broadcast the status update request"),
    9: ("svr-send", "server sends to clients", "Maestro server does not publish the status update request"),
}
"""By number: a short id, a title, and the error with which the older scripts name its absence."""
