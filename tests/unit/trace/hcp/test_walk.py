"""The walk over documents: each hop behind in turn, deletions, contradictions, and unreadable hops."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from maestropy.trace.findings.codes import CODES
from maestropy.trace.hcp import walk
from maestropy.trace.hcp.model import ALL_HOPS, HopState, Walk
from maestropy.trace.output import Exit
from tests.unit.trace.hcp.hcp_documents import (
    ARM,
    CID,
    DATA,
    MAIN_BUNDLE,
    NAMESPACE,
    NOW,
    Change,
    Documents,
    document,
    healthy,
    stuck,
    tell,
    walked,
    write,
)

ENTRIES = [
    pytest.param(ARM, id="resource-id"),
    pytest.param(ARM.lower() + "/nodePools/workers", id="resource-id-of-a-child"),
    pytest.param(CID, id="clusters-service-id"),
    pytest.param(MAIN_BUNDLE, id="bundle-id"),
    pytest.param(f"{NAMESPACE}/f3k9q2", id="hosted-cluster"),
    pytest.param(NAMESPACE, id="namespace"),
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("folder", ["all-shipped-documents", "consistent-documents"])
def test_stuck_on_etcd_quorum(entry: str, folder: str, tmp_path: Path) -> None:
    found = walked(DATA if folder == "all-shipped-documents" else write(tmp_path, stuck()), entry)
    verdict = found.verdict
    assert (verdict.hop, verdict.state, verdict.code) == ("hosted-cluster", HopState.BAD, "HCP-701")
    assert "EtcdWaitingForQuorum: Waiting for etcd to reach quorum" in verdict.reason
    assert "etcd-1, etcd-2 are not ready" in verdict.reason
    assert verdict.exit is Exit.PROBLEM
    assert not verdict.deleting
    assert {hop.name: (hop.state.value, hop.waits) for hop in found.hops} == {
        "frontend": ("behind", True),
        "backend": ("behind", True),
        "clusters-service": ("behind", True),
        "shard": ("ok", False),
        "maestro": ("ok", False),
        "agent": ("ok", False),
        "works": ("ok", False),
        "hosted-cluster": ("bad", False),
        "control-plane": ("behind", False),
        "managed-cluster": ("behind", True),
        "node-pools": ("behind", True),
    }
    assert any(each.startswith(f"maestro trace work --resource-id {MAIN_BUNDLE} --offline ") for each in verdict.next)
    assert any(f"maestro trace request --resource-id {MAIN_BUNDLE} LOGS" in each for each in verdict.next)
    assert any(f"-n {NAMESPACE}-f3k9q2 describe pod etcd-1" in each for each in verdict.next)


def test_differing_documents_are_reported() -> None:
    said = [contradiction.says for contradiction in walked(DATA).verdict.contradictions]
    assert any("14-maestro-softdeleted-bundle.json" in each and "deleted_at none / 2026" in each for each in said)
    assert any("13-maestro-undelivered-bundle.json" in each for each in said)
    assert any("03-frontend-404.json" in each for each in said)


def test_consistent_documents_have_no_contradiction(tmp_path: Path) -> None:
    assert walked(write(tmp_path, stuck())).verdict.contradictions == ()


def test_names_of_hops_are_in_the_order_of_the_walk() -> None:
    assert tuple(hop.name for hop in walk.HOPS) == ALL_HOPS


def test_healthy(tmp_path: Path) -> None:
    found = walked(write(tmp_path, healthy()))
    assert (found.verdict.state, found.verdict.code, found.verdict.exit) == (HopState.OK, "HCP-000", Exit.HEALTHY)
    assert {hop.state for hop in found.hops} == {HopState.OK}


def _conditions(told: Documents, key: str) -> dict[str, dict[str, str]]:
    return {condition["type"]: condition for condition in told[key]["status"]["conditions"]}


def not_dispatched(told: Documents) -> None:
    told["arm"]["properties"]["provisioningState"] = "Accepted"
    told["cs"] = {"kind": "ClusterList", "items": [], "total": 0}
    for key in ("status", "shard", "bundles", "works", "applied", "managed", "hosted", "nodepool", "pods", "cosmos"):
        del told[key]


def check_failed(told: Documents) -> None:
    told["checks"] = document("09-cs-inflight-checks-failed.json")
    told["status"]["state"] = "validating"


def in_error(told: Documents) -> None:
    told["status"] |= {"state": "error", "provision_error_code": "OCM3055", "provision_error_message": "no quota"}


def pending(told: Documents) -> None:
    told["status"]["state"] = "pending"


def nothing_sent(told: Documents) -> None:
    told["status"]["state"] = "installing"
    told["bundles"] = {"kind": "ResourceBundleList", "items": [], "total": 0}
    for key in ("works", "applied", "managed", "hosted", "nodepool", "pods"):
        del told[key]


def cs_has_not_noticed(told: Documents) -> None:
    told["arm"]["properties"]["provisioningState"] = "Provisioning"
    told["status"]["state"] = "installing"


def shard_offline(told: Documents) -> None:
    told["shard"]["status"] = "offline"


def undelivered(told: Documents) -> None:
    told["bundles"]["items"][1] = document("13-maestro-undelivered-bundle.json")


def status_of_older_spec(told: Documents) -> None:
    told["bundles"]["items"][0]["status"]["ObservedVersion"] = 1


def not_applied(told: Documents) -> None:
    applied = told["bundles"]["items"][0]["status"]["conditions"][0]
    applied |= {"status": "False", "reason": "AppliedManifestWorkFailed", "message": "forbidden"}


def no_record(told: Documents) -> None:
    told["applied"] = {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "AppliedManifestWorkList",
        "items": [],
    }


def object_missing(told: Documents) -> None:
    del told["works"]["items"][0]


def inner_not_applied(told: Documents) -> None:
    status = told["works"]["items"][0]["status"]
    status["conditions"][0] |= {"status": "False", "reason": "AppliedManifestWorkFailed", "message": "1 of 2 failed"}
    status["resourceStatus"]["manifests"][1]["conditions"][0] |= {"status": "False", "reason": "AppliedManifestFailed"}


def work_not_taken(told: Documents) -> None:
    told["works"]["items"][0]["status"] = {}


def hosted_cluster_missing(told: Documents) -> None:
    told["hosted"] = {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedClusterList", "items": []}


def bad_key(told: Documents) -> None:
    condition = {"type": "ValidAzureKMSConfig", "status": "False", "reason": "AzureError", "message": "no access"}
    told["hosted"]["status"]["conditions"].append(condition)
    _conditions(told, "hosted")["Degraded"]["status"] = "True"


def pod_crashes(told: Documents) -> None:
    told["pods"]["items"][3]["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {"name": "c", "ready": False, "restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        ],
    }


def klusterlet_lost(told: Documents) -> None:
    _conditions(told, "managed")["ManagedClusterConditionAvailable"]["status"] = "Unknown"


def too_few_nodes(told: Documents) -> None:
    told["nodepool"]["status"]["replicas"] = 2


def namespace_stuck(told: Documents) -> None:
    told["namespace"] = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"{NAMESPACE}-f3k9q2"},
        "status": {
            "phase": "Terminating",
            "conditions": [
                {"type": "NamespaceContentRemaining", "status": "True", "message": "azuremachines. has 2 instances"}
            ],
        },
    }


@pytest.mark.parametrize(
    ("change", "hop", "code", "words"),
    [
        (not_dispatched, "frontend", "HCP-101", "nothing was dispatched"),
        (check_failed, "clusters-service", "HCP-301", "has no role on key vault"),
        (in_error, "clusters-service", "HCP-303", "OCM3055 no quota"),
        (pending, "clusters-service", "HCP-302", "pending"),
        (nothing_sent, "clusters-service", "HCP-304", "nothing was sent"),
        (cs_has_not_noticed, "clusters-service", "HCP-306", "has not taken note"),
        (shard_offline, "shard", "HCP-351", "offline"),
        (undelivered, "maestro", "HCP-402", "73183d1e-ff45-5018-94d5-103f6edca138"),
        (status_of_older_spec, "maestro", "HCP-403", "version 2, its status is about 1"),
        (not_applied, "maestro", "HCP-404", "forbidden"),
        (no_record, "agent", "HCP-501", "no record of bundle"),
        (object_missing, "agent", "HCP-503", f"ManifestWork local-cluster/{CID} was applied"),
        (inner_not_applied, "works", "HCP-602", f"HostedCluster {NAMESPACE}/f3k9q2 Applied=False"),
        (work_not_taken, "works", "HCP-604", "has not taken it"),
        (hosted_cluster_missing, "hosted-cluster", "HCP-704", "no HostedCluster"),
        (bad_key, "hosted-cluster", "HCP-703", "AzureError: no access"),
        (pod_crashes, "control-plane", "HCP-801", "CrashLoopBackOff, 9 restarts"),
        (namespace_stuck, "control-plane", "HCP-802", "azuremachines. has 2 instances"),
        (klusterlet_lost, "managed-cluster", "HCP-612", "ManagedClusterConditionAvailable=Unknown"),
        (too_few_nodes, "node-pools", "HCP-901", "2 of 3 replicas"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_first_hop_behind_is_the_verdict(change: Change, hop: str, code: str, words: str, tmp_path: Path) -> None:
    told = healthy()
    change(told)
    verdict = walked(write(tmp_path, told)).verdict
    assert (verdict.hop, verdict.code, verdict.exit) == (hop, code, Exit.PROBLEM)
    assert words in verdict.reason
    assert code in CODES


def test_bundle_just_sent_is_not_undelivered(tmp_path: Path) -> None:
    told = healthy()
    undelivered(told)
    early = walked(write(tmp_path, told), now=NOW - timedelta(minutes=38))
    assert (early.verdict.hop, early.verdict.state) == ("maestro", HopState.BEHIND)
    assert walked(tmp_path).verdict.state is HopState.BAD


def no_difference(told: Documents) -> None:
    told["arm"]["properties"]["provisioningState"] = "Provisioning"
    told["arm"]["properties"]["api"]["url"] = ""


def cs_ready_too_early(told: Documents) -> None:
    told["status"]["state"] = "ready"


def old_feedback(told: Documents) -> None:
    tell(told, "Available", "True", "AsExpected")


def other_consumer(told: Documents) -> None:
    told["shard"]["maestro_config"]["consumer_name"] = "hcp-underlay-usw3-mgmt-2"


def orphaned_works(told: Documents) -> None:
    told["bundles"] = {"kind": "ResourceBundleList", "items": [], "total": 0}


def forgotten_by_arm(told: Documents) -> None:
    told["arm"] = document("03-frontend-404.json")


@pytest.mark.parametrize(
    ("base", "change", "code", "words"),
    [
        (healthy, no_difference, "HCP-011", "the worst of the HostedCluster"),
        (healthy, no_difference, "HCP-021", "api.url is empty"),
        (stuck, cs_ready_too_early, "HCP-013", "Clusters Service says ready, the HostedCluster is not available"),
        (stuck, old_feedback, "HCP-014", "the feedback is old"),
        (stuck, other_consumer, "HCP-019", "bundles are sent to hcp-underlay-usw3-mgmt-1"),
        (stuck, other_consumer, "HCP-020", "several stamps"),
        (healthy, orphaned_works, "HCP-017", "no component will delete them"),
        (stuck, forgotten_by_arm, "HCP-012", "its document went first"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_contradictions(base, change: Change, code: str, words: str, tmp_path: Path) -> None:
    told = base()
    change(told)
    found = {
        contradiction.code: contradiction.says for contradiction in walked(write(tmp_path, told)).verdict.contradictions
    }
    assert words in found[code]
    assert code in CODES


def test_arm_waits_with_healthy_hops_below(tmp_path: Path) -> None:
    told = healthy()
    no_difference(told)
    verdict = walked(write(tmp_path, told)).verdict
    assert (verdict.hop, verdict.code, verdict.exit) == ("frontend", "HCP-102", Exit.PROBLEM)


def deleting(told: Documents) -> None:
    told["arm"]["properties"]["provisioningState"] = "Deleting"
    told["status"]["state"] = "uninstalling"


class TestDeletion:
    def walk(self, tmp_path: Path, change: Change) -> Walk:
        told = stuck()
        deleting(told)
        change(told)
        return walked(write(tmp_path, told), now=NOW + self.later)

    later = timedelta(hours=2)

    def test_nothing_is_deleted_below_yet(self, tmp_path: Path) -> None:
        verdict = self.walk(tmp_path, lambda _: None).verdict
        assert verdict.deleting
        assert (verdict.hop, verdict.code) == ("clusters-service", "HCP-310")
        who = {recreation.who for recreation in verdict.recreations}
        assert who == {"the Maestro agent", "ACM's work agent", "the HyperShift operator"}

    def test_agent_lost_the_deletion(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["bundles"]["items"][0] = document("14-maestro-softdeleted-bundle.json")

        verdict = self.walk(tmp_path, change).verdict
        assert (verdict.hop, verdict.code) == ("agent", "HCP-502")
        assert MAIN_BUNDLE in verdict.reason
        assert "HCP-016" in {contradiction.code for contradiction in verdict.contradictions}
        assert not any(MAIN_BUNDLE in recreation.because for recreation in verdict.recreations)

    def test_agent_has_just_been_told(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["bundles"]["items"][0] = document("14-maestro-softdeleted-bundle.json")

        self.later = timedelta(hours=1, minutes=25)
        verdict = self.walk(tmp_path, change).verdict
        assert (verdict.hop, verdict.code, verdict.state) == ("agent", "HCP-502", HopState.BEHIND)

    def test_managed_cluster_holds_it(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["bundles"]["items"][2]["deleted_at"] = "2026-08-20T12:00:00Z"
            told["managed"]["metadata"] |= {
                "deletionTimestamp": "2026-08-20T12:00:01Z",
                "finalizers": ["hosting-addon"],
            }

        verdict = self.walk(tmp_path, change).verdict
        assert (verdict.hop, verdict.code) == ("managed-cluster", "HCP-615")
        assert "held by hosting-addon" in verdict.reason

    def test_held_by_finalizers(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["bundles"]["items"][0] = document("14-maestro-softdeleted-bundle.json")
            told["works"]["items"][0]["metadata"]["deletionTimestamp"] = "2026-08-20T12:00:05Z"
            told["hosted"]["metadata"]["deletionTimestamp"] = "2026-08-20T12:00:06Z"

        verdict = self.walk(tmp_path, change).verdict
        assert (verdict.hop, verdict.code, verdict.state) == ("hosted-cluster", "HCP-705", HopState.BAD)
        assert "hypershift.openshift.io/finalizer" in verdict.reason
        assert "for 39m" in verdict.reason

    def test_agents_word_never_came(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["bundles"]["items"] = [document("14-maestro-softdeleted-bundle.json")]
            told["works"] = {
                "apiVersion": "work.open-cluster-management.io/v1",
                "kind": "ManifestWorkList",
                "items": [],
            }
            for key in ("hosted", "nodepool", "pods", "managed", "applied"):
                del told[key]

        verdict = self.walk(tmp_path, change).verdict
        assert (verdict.hop, verdict.code) == ("maestro", "HCP-406")
        assert "the agent's word never came" in verdict.reason

    def test_left_behind_by_clusters_service(self, tmp_path: Path) -> None:
        def change(told: Documents) -> None:
            told["cs"] = {"kind": "ClusterList", "items": [], "total": 0}
            del told["status"]
            told["arm"] = document("03-frontend-404.json")

        verdict = self.walk(tmp_path, change).verdict
        assert verdict.deleting
        assert (verdict.hop, verdict.code) == ("maestro", "HCP-408")
        assert "HCP-018" in {contradiction.code for contradiction in verdict.contradictions}


@pytest.mark.parametrize("missing", ["arm", "shard", "bundles", "works", "applied", "managed", "nodepool"])
def test_unreadable_hop_is_unknown_and_the_walk_continues(missing: str, tmp_path: Path) -> None:
    told = stuck()
    del told[missing]
    found = walked(write(tmp_path, told))
    assert (found.verdict.hop, found.verdict.code) == ("hosted-cluster", "HCP-701")
    assert HopState.BAD not in {hop.state for hop in found.hops if hop.name != "hosted-cluster"}


def test_unreadable_management_cluster_is_judged_by_feedback(tmp_path: Path) -> None:
    told = stuck()
    for key in ("works", "applied", "managed", "hosted", "nodepool", "pods"):
        del told[key]
    found = walked(write(tmp_path, told))
    assert (found.verdict.hop, found.verdict.code) == ("hosted-cluster", "HCP-701")
    assert "EtcdWaitingForQuorum" in found.verdict.reason
    assert found.hop("works").state is HopState.OK
    assert found.hop("control-plane").state is HopState.UNKNOWN
    assert any("its last status in Maestro, from 33m ago" in note for note in found.hop("hosted-cluster").notes)


def test_only_services_are_readable(tmp_path: Path) -> None:
    told = {key: value for key, value in stuck().items() if key in {"arm", "cs", "status"}}
    verdict = walked(write(tmp_path, told)).verdict
    assert (verdict.state, verdict.code, verdict.exit) == (HopState.UNKNOWN, "HCP-001", Exit.INCONCLUSIVE)
    assert verdict.reason.startswith("clusters-service waits for the hops below")
    assert any("svc/maestro" in each for each in verdict.next)


def test_several_clusters_are_ambiguous(tmp_path: Path) -> None:
    told = stuck()
    other = json.loads(json.dumps(told["cs"]["items"][0])) | {"id": CID[::-1]}
    told["cs"]["items"].append(other)
    verdict = walked(write(tmp_path, told)).verdict
    assert (verdict.code, verdict.exit) == ("HCP-003", Exit.AMBIGUOUS)
    assert CID[::-1] in verdict.reason


def test_unknown_hcp_is_not_found() -> None:
    verdict = walked(DATA, "0" * 32).verdict
    assert (verdict.code, verdict.exit) == ("HCP-002", Exit.NOT_FOUND)


def test_desires_of_the_kube_applier_are_shown(tmp_path: Path) -> None:
    told = stuck()
    told["desire"] = {
        "resourceType": "microsoft.redhatopenshift/hcpopenshiftclusters/readdesires",
        "resourceID": f"{ARM.lower()}/readdesires/hosted-cluster",
        "properties": {
            "status": {
                "conditions": [{"type": "Successful", "status": "False", "reason": "KubeAPIError", "message": "no"}]
            }
        },
    }
    hop = walked(write(tmp_path, told)).hop("backend")
    assert hop.code == "HCP-203"
    assert "readdesires/hosted-cluster is not successful" in hop.reason


def test_every_fact_that_has_a_time_has_an_age() -> None:
    found = walked(DATA)
    ages = {fact.name: found.context.age(fact.since) for fact in found.hop("hosted-cluster").facts if fact.since}
    assert ages["EtcdAvailable"] == timedelta(minutes=34, seconds=48)
