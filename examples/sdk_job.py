"""A Job with nothing but the client: find or make a work, read what came back, write a report for the sidecar.

Told by the environment, as Jobs are: MAESTRO_API_URL, MAESTRO_GRPC_URL, MANAGEMENT_CLUSTER_CONSUMER and RESULTS_PATH;
MAESTRO_CA_FILE and MAESTRO_TOKEN_FILE where Maestro wants to know who we are. Run it again to see how far it is.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from maestropy import Maestro, MaestroError, Work, errors, targeting

HOSTED_CLUSTER = {
    "apiVersion": "hypershift.openshift.io/v1beta1",
    "kind": "HostedCluster",
    "metadata": {"name": "my-cluster", "namespace": "clusters"},
    "spec": {
        "platform": {"type": "GCP"},
        "release": {"image": "quay.io/openshift-release-dev/ocp-release:4.14.0"},
    },
}
WORK = Work("hostedcluster-abc123", labels={"hyperfleet.io/cluster-id": "abc123"}).add(
    HOSTED_CLUSTER, feedback={"status": ".status"}, update_strategy="ServerSideApply"
)


def report(client: Maestro, consumer: str) -> dict[str, Any]:
    """Return what the sidecar is told: of a work just made, or of what the cluster says about an older one."""
    works = client.works(consumer)
    try:
        seen = works.get(WORK.name)
    except errors.NotFound:
        works.create(WORK)
        return {"conditions": _conditions("ManifestWorkCreated", available=("False", "Provisioning"))}
    status = seen.feedback("status", default={})
    said = {each["type"]: each["status"] for each in status.get("conditions", ())}
    is_ready = said.get("Available") == "True"
    available = ("True", "ControlPlaneReady") if is_ready else ("False", "Provisioning")
    return {
        "conditions": _conditions("ManifestWorkExists", available=available),
        "data": {"control_plane_endpoint": status.get("controlPlaneEndpoint", {})},
    }


def _conditions(applied: str, *, available: tuple[str, str]) -> list[dict[str, str]]:
    told = {"Applied": ("True", applied), "Available": available, "Health": ("True", "NoIssues")}
    return [{"type": kind, "status": status, "reason": reason} for kind, (status, reason) in told.items()]


def main() -> int:
    """Report, or end with the reason on standard error; a retryable error may be better the next time."""
    path = Path(os.environ.get("RESULTS_PATH", "/results/adapter-report.json"))
    try:
        consumer = asyncio.run(targeting.from_environment("MANAGEMENT_CLUSTER_CONSUMER").consumer())
        with Maestro(source="my-adapter") as client:
            told = report(client, consumer)
        # Put in its place at once: the sidecar must never read half of it.
        written = path.with_suffix(".new")
        written.write_text(json.dumps(told, indent=2) + "\n")
        written.replace(path)
    except MaestroError as error:
        sys.stderr.write(f"{'for now: ' if error.is_retryable else ''}{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{path} cannot be written: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
