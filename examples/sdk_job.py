"""A Job that uses only the client: get or create a work, read its feedback, write a report for the sidecar.

Configured by environment variables: MAESTRO_API_URL, MAESTRO_GRPC_URL, MANAGEMENT_CLUSTER_CONSUMER and RESULTS_PATH;
MAESTRO_CA_FILE and MAESTRO_TOKEN_FILE if Maestro requires authentication. Run it again to update the report.
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
    """Return the report: of a work that was just created, or of the status of an existing one."""
    works = client.works(consumer)
    try:
        stored = works.get(WORK.name)
    except errors.NotFound:
        works.create(WORK)
        return {"conditions": _conditions("ManifestWorkCreated", available=("False", "Provisioning"))}
    status = stored.feedback("status", default={})
    by_type = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    is_ready = by_type.get("Available") == "True"
    available = ("True", "ControlPlaneReady") if is_ready else ("False", "Provisioning")
    return {
        "conditions": _conditions("ManifestWorkExists", available=available),
        "data": {"control_plane_endpoint": status.get("controlPlaneEndpoint", {})},
    }


def _conditions(applied: str, *, available: tuple[str, str]) -> list[dict[str, str]]:
    conditions = {"Applied": ("True", applied), "Available": available, "Health": ("True", "NoIssues")}
    return [{"type": kind, "status": status, "reason": reason} for kind, (status, reason) in conditions.items()]


def main() -> int:
    """Write the report, or the reason to standard error; a retryable error may succeed later."""
    path = Path(os.environ.get("RESULTS_PATH", "/results/adapter-report.json"))
    try:
        consumer = asyncio.run(targeting.from_environment("MANAGEMENT_CLUSTER_CONSUMER").consumer())
        with Maestro(source="my-adapter") as client:
            status = report(client, consumer)
        # Renamed when complete: the sidecar must never read half of it.
        written = path.with_suffix(".new")
        written.write_text(json.dumps(status, indent=2) + "\n")
        written.replace(path)
    except MaestroError as error:
        sys.stderr.write(f"{'retryable: ' if error.is_retryable else ''}{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{path} cannot be written: {error.strerror}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
