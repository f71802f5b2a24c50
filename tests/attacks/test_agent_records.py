"""Attacks by the author of a work on what the agent keeps on the cluster: its records of all works.

The agent runs on the sandbox Kubernetes API with all permissions, as Maestro's charts install it.
"""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from maestropy.agent.decide import ownership
from maestropy.kube.config import load as config
from maestropy.sandbox.kubeapi.cluster import SandboxCluster
from tests.conformance import sample_manifests as samples
from tests.conformance.agent_environment import AgentEnvironment, Cluster, agent_environment, condition

Json = dict[str, Any]
NUMBERS = itertools.count(1)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"appliedmanifestworks.{ownership.GROUP}"},
    "spec": {
        "group": ownership.GROUP,
        "names": {"kind": ownership.KIND, "plural": "appliedmanifestworks", "singular": "appliedmanifestwork"},
        "scope": "Cluster",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
STRATEGIES = ["Update", "CreateOnly", "ServerSideApply", "ReadOnly"]


@asynccontextmanager
async def environment() -> AsyncIterator[AgentEnvironment]:
    """An agent with the work of a victim."""
    async with (
        SandboxCluster(delay=0.01) as sandbox,
        Cluster(config.from_kubeconfig([sandbox.kubeconfig])) as cluster,
        agent_environment(cluster, f"records{next(NUMBERS)}") as env,
    ):
        env.publish("victim", victim(env))
        await env.wait_until_applied("victim")
        yield env


def victim(env: AgentEnvironment) -> Json:
    return samples.config_map(env.namespace, "victim", data={"v": "1"})


def thief(env: AgentEnvironment) -> Json:
    spec = {"hubHash": "e", "agentID": "e", "manifestWorkName": "e"}
    return {**env.applied_work_ref("victim"), "spec": spec}


async def uids(env: AgentEnvironment) -> list[str]:
    """Return what must not change: the UIDs of the victim's object, of its record and of the definition."""
    live = [await env.cluster.get(manifest) for manifest in (victim(env), thief(env), DEFINITION)]
    return [body["metadata"]["uid"] if body else "" for body in live]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_record_of_another_work(strategy: str) -> None:
    """A work contains the AppliedManifestWork of another work and is then deleted -> not applied; nothing is deleted"""
    async with environment() as env:
        before, record = await uids(env), await env.applied_work("victim")
        options = samples.config(
            "appliedmanifestworks",
            "*",
            group=ownership.GROUP,
            updateStrategy=samples.strategy(strategy),
            feedbackRules=samples.json_paths(objects=".status"),
        )
        other = samples.config_map(env.namespace, "other")
        env.publish("thief", thief(env), other, manifestConfigs=[options])
        reported = await env.wait_for_conditions("thief", applied="F:FT", available="U:UT")
        entry = reported.status.manifests[0]
        assert f"{env.applied_work_name('victim')} is a record of the agent" in condition(entry, "Applied").message
        assert entry.feedback == ()
        env.delete("thief")
        await env.wait_until_deleted("thief")
        await env.wait_until_idle()
        assert await uids(env) == before
        after = await env.applied_work("victim")
        assert record is not None
        assert after is not None
        assert after["metadata"] == record["metadata"]
        assert after["spec"] == record["spec"]


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_definition_of_records(strategy: str) -> None:
    """A work contains the CRD of AppliedManifestWorks and is then deleted -> not applied; no work loses anything"""
    async with environment() as env:
        before = await uids(env)
        options = samples.config(
            "customresourcedefinitions", "*", group="apiextensions.k8s.io", updateStrategy=samples.strategy(strategy)
        )
        env.publish("thief", DEFINITION, manifestConfigs=[options])
        reported = await env.wait_for_conditions("thief", applied="F:F")
        applied = condition(reported.status.manifests[0], "Applied")
        assert "defines the records of the agent: no work may contain it" in applied.message
        env.delete("thief")
        await env.wait_until_deleted("thief")
        await env.wait_until_idle()
        assert await uids(env) == before


async def test_records_owned_before() -> None:
    """A work that got hold of records under an older agent is deleted -> it loses them; they stay as they are"""
    async with environment() as env:
        before = await uids(env)
        env.publish("thief", samples.config_map(env.namespace, "other"))
        await env.wait_until_applied("thief")
        await env.wait_until_idle()
        await env.stop()
        owner = await env.applied_work("thief")
        assert owner is not None
        await steal(env, owner)
        await env.start()
        env.delete("thief")
        await env.wait_until_deleted("thief")
        await env.wait_until_idle()
        assert await uids(env) == before
        record = await env.applied_work("victim")
        assert record is not None
        assert "ownerReferences" not in record["metadata"]


async def test_record_in_a_work_of_an_older_agent() -> None:
    """A work that an older agent applied still contains a record -> it loses the record with the next reconcile"""
    async with environment() as env:
        before = await uids(env)
        env.publish("thief", samples.config_map(env.namespace, "other"))
        await env.wait_until_applied("thief")
        await env.wait_until_idle()
        await env.stop()
        owner = await env.applied_work("thief")
        assert owner is not None
        await steal(env, owner)
        env.publish("thief", thief(env))
        await env.start()
        await env.wait_for_conditions("thief", applied="F:F")

        async def is_released() -> bool:
            record = await env.applied_work("victim")
            return record is not None and not record["metadata"].get("ownerReferences")

        await env.wait_until(is_released, what="the record to lose its owner")
        assert await uids(env) == before


async def steal(env: AgentEnvironment, owner: Json) -> None:
    """Give the victim's record and the definition to another work, as an agent without this protection did."""
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    reference = ownership.OwnerReference(name=name, uid=uid, is_owned=True).to_json()
    listed = list(owner["status"]["appliedResources"])
    for manifest, group, plural in (
        (thief(env), ownership.GROUP, "appliedmanifestworks"),
        (DEFINITION, "apiextensions.k8s.io", "customresourcedefinitions"),
    ):
        live = await env.cluster.edit(manifest, {"metadata": {"ownerReferences": [reference]}})
        metadata = live["metadata"]
        entry = {"group": group, "version": "v1", "resource": plural, "namespace": ""}
        listed.append({**entry, "name": metadata["name"], "uid": metadata["uid"]})
    await env.cluster.edit(owner, {"status": {"appliedResources": listed}}, subresource="status")


async def test_lease() -> None:
    """A work contains the lease of the agents and names another holder -> not applied; the agent goes on"""
    async with environment() as env:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "maestro-agent-lock", "namespace": env.namespace},
            "spec": {"holderIdentity": "attacker", "leaseDurationSeconds": 2_000_000_000},
        }
        env.publish("thief", lease)
        reported = await env.wait_for_conditions("thief", applied="F:F")
        message = condition(reported.status.manifests[0], "Applied").message
        assert "Lease maestro-agent-lock says which agent acts: no work may contain it" in message
        assert await env.cluster.get(lease) is None


async def test_own_installation() -> None:
    """A work contains the deployment and the account of an agent -> applied: agents are installed by works too"""
    async with environment() as env:
        installed = [
            samples.deployment(env.namespace, "maestro-agent"),
            samples.service_account(env.namespace, "maestro-agent-sa"),
        ]
        env.publish("agent", *installed)
        await env.wait_until_applied("agent")
