"""Documents of one HCP that is stuck on etcd quorum, with helpers to change them."""

import asyncio
import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from maestropy.trace.hcp import identity, walk
from maestropy.trace.hcp.documents import offline
from maestropy.trace.hcp.model import Walk
from maestropy.trace.hcp.query import Snapshot

DATA = Path(__file__).parents[3] / "data" / "trace_hcp"
NOW = datetime(2026, 8, 20, 10, 40, tzinfo=UTC)
CID = "2ppsfca8u7368uin9koq9aq1b183mqke"
ARM = (
    "/subscriptions/3f6c1d52-7a0b-4d7e-9c55-0a1be1a2c3d4/resourceGroups/rg-customer-a"
    "/providers/Microsoft.RedHatOpenShift/hcpOpenShiftClusters/orders-prod"
)
NAMESPACE = f"ocm-arohcpdev-{CID}"
MAIN_BUNDLE = "0243d197-f374-5370-b866-6d9272063084"

Documents = dict[str, Any]
Change = Callable[[Documents], None]

_FILES = {
    "arm": "01-frontend-cluster.json",
    "operation": "02-frontend-operationstatus.json",
    "cosmos": "04-cosmos-cluster.json",
    "placement": "05-cosmos-serviceprovidercluster.json",
    "cs": "06-cs-clusters.json",
    "status": "07-cs-cluster-status.json",
    "shard": "08-cs-provision-shard.json",
    "consumers": "10-maestro-consumers.json",
    "bundles": "11-maestro-bundles.json",
    "works": "16-mc-manifestworks.json",
    "applied": "17-mc-appliedmanifestwork.json",
    "managed": "18-mc-managedcluster.json",
    "hosted": "19-mc-hostedcluster.json",
    "nodepool": "20-mc-nodepool.json",
    "pods": "21-mc-pods.json",
}


def document(name: str) -> Any:
    """Return a shipped document by its file name."""
    return json.loads((DATA / name).read_text())


def stuck() -> Documents:
    """Return the documents of the HCP that waits for etcd."""
    return {key: document(name) for key, name in _FILES.items()}


def healthy() -> Documents:
    """Return the same HCP after etcd came up."""
    told = stuck()
    told["arm"]["properties"]["provisioningState"] = "Succeeded"
    told["arm"]["properties"]["api"]["url"] = "https://api.example.net"
    told["operation"]["status"] = "Succeeded"
    told["cosmos"]["properties"]["serviceProviderProperties"]["provisioningState"] = "Succeeded"
    told["cs"]["items"][0]["state"] = told["cs"]["items"][0]["status"]["state"] = told["status"]["state"] = "ready"
    told["hosted"]["status"]["controlPlaneEndpoint"] = {"host": "api.example.net", "port": 443}
    for condition in told["hosted"]["status"]["conditions"]:
        condition |= {
            "status": str(condition["type"] not in {"Degraded", "Progressing"}),
            "reason": "AsExpected",
            "message": "",
        }
    for condition in told["nodepool"]["status"]["conditions"]:
        condition["status"] = "True"
    told["nodepool"]["status"]["replicas"] = 3
    told["managed"]["status"]["conditions"][1]["status"] = "True"
    told["managed"]["status"]["conditions"].append({"type": "ManagedClusterConditionAvailable", "status": "True"})
    for pod in told["pods"]["items"]:
        pod["status"] = {"phase": "Running", "containerStatuses": [{"name": "c", "ready": True, "restartCount": 0}]}
    tell(told, "Available", "True", "AsExpected")
    return told


def tell(told: Documents, kind: str, status: str, reason: str) -> None:
    """Make Maestro's innermost feedback say only this about the HostedCluster."""
    value = told["bundles"]["items"][0]["status"]["resourceStatus"][0]["statusFeedback"]["values"][0]["fieldValue"]
    inner = json.loads(value["jsonRaw"])
    inner["resourceStatus"]["manifests"][1]["statusFeedback"]["values"] = [
        {"name": f"{kind}-Status", "fieldValue": {"type": "String", "string": status}},
        {"name": f"{kind}-Reason", "fieldValue": {"type": "String", "string": reason}},
    ]
    value["jsonRaw"] = json.dumps(inner)


def write(folder: Path, told: Documents) -> Path:
    """Write documents under names that tell nothing."""
    for number, value in enumerate(copy.deepcopy(list(told.values()))):
        (folder / f"{number}.txt").write_text(json.dumps(value))
    return folder


def walked(folder: Path, entry: str = ARM, *, now: datetime = NOW) -> Walk:
    """Walk over a directory."""
    snapshot = Snapshot(now=now, source=str(folder), is_offline=True)
    return asyncio.run(walk.run(identity.parse(entry), runner=offline.read(folder), snapshot=snapshot))
