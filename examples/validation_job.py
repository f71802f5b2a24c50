"""Validate the spec of a cluster before anything is created: no works, runs as a Job."""

import ipaddress
from typing import Any

from maestropy.adapter import Adapter, Event, Resource, StatusReport

adapter = Adapter("validation")


@adapter.reconciles("Cluster")
def validate(_: Event, cluster: Resource) -> StatusReport:
    """Report the problems of the spec."""
    problems = [*_release(cluster.spec), *_network(cluster.spec.get("network") or {})]
    if problems:
        return StatusReport(available=False, reason="ValidationFailed", message="; ".join(problems))
    return StatusReport(available=True, reason="Validated", data={"checks": ["release", "network"]})


def _release(spec: Any) -> list[str]:
    release = spec.get("release", "")
    return [] if ":" in release else [f"spec.release is {release!r}, and must be an image with a tag"]


def _network(network: Any) -> list[str]:
    networks = {}
    for name in ("machine", "pod", "service"):
        try:
            networks[name] = ipaddress.ip_network(network.get(name, ""))
        except ValueError:
            return [f"spec.network.{name} is {network.get(name)!r}, and must be a network such as 10.0.0.0/16"]
    return [
        f"spec.network.{left} overlaps {right}"
        for left, right in (("machine", "pod"), ("machine", "service"), ("pod", "service"))
        if networks[left].overlaps(networks[right])
    ]
