"""Check what a customer asked for before anything is built: wants nothing on a cluster, runs as a Job."""

import ipaddress
from typing import Any

from maestropy.adapter import Adapter, Event, Reading, Resource

adapter = Adapter("validation")


@adapter.reconciles("Cluster")
def validate(_: Event, cluster: Resource) -> Reading:
    """Say what is wrong with the spec, if anything is."""
    problems = [*_release(cluster.spec), *_network(cluster.spec.get("network") or {})]
    if problems:
        return Reading(available=False, reason="ValidationFailed", message="; ".join(problems))
    return Reading(available=True, reason="Validated", data={"checks": ["release", "network"]})


def _release(spec: Any) -> list[str]:
    release = spec.get("release", "")
    return [] if ":" in release else [f"spec.release is {release!r}, and must be an image with a tag"]


def _network(network: Any) -> list[str]:
    found = {}
    for name in ("machine", "pod", "service"):
        try:
            found[name] = ipaddress.ip_network(network.get(name, ""))
        except ValueError:
            return [f"spec.network.{name} is {network.get(name)!r}, and must be a network such as 10.0.0.0/16"]
    return [
        f"spec.network.{one} overlaps {other}"
        for one, other in (("machine", "pod"), ("machine", "service"), ("pod", "service"))
        if found[one].overlaps(found[other])
    ]
