"""Decide where a port-forward to a pod leads. Pure.

The sandbox runs no containers, so nothing listens on the ports of its pods. An annotation names the local ports that
stand in for them: `sandbox.maestropy/forward: "80=18080, 8443=18443"` leads port 80 of the pod to 127.0.0.1:18080.
Only ports of this machine's loopback can be named.
"""

from collections.abc import Mapping
from typing import Any

FORWARD = "sandbox.maestropy/forward"
_MAX_PORT = 65535


class NoTarget(Exception):
    """A port leads nowhere; the text is for the user of the port-forward."""


def local_port(pod: Mapping[str, Any], port: int) -> int:
    """Return the local port that stands in for a port of a pod; raises NoTarget."""
    metadata = pod["metadata"]
    written = (metadata.get("annotations") or {}).get(FORWARD, "")
    for entry in filter(None, (part.strip() for part in written.split(","))):
        left, separator, right = entry.partition("=")
        if not separator or not (_is_port(left) and _is_port(right)):
            raise NoTarget(f"annotation {FORWARD} has {entry!r}; write POD_PORT=LOCAL_PORT, such as 80=18080")
        if int(left) == port:
            return int(right)
    raise NoTarget(
        f"the sandbox runs no containers, so nothing listens on port {port} of pod {metadata['name']}; "
        f"annotate the pod with {FORWARD}={port}=LOCAL_PORT to lead it to a local port"
    )


def port_number(text: str) -> int:
    """Return the number of a port that a client sent; raises NoTarget."""
    if not _is_port(text):
        raise NoTarget(f"{text[:10]!r} is not a port")
    return int(text)


def _is_port(text: str) -> bool:
    text = text.strip()
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) <= _MAX_PORT
