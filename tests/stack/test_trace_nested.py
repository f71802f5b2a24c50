"""Nested works, live on a sandbox cluster: traced two levels down, and from the innermost object up.

A real agent applies the outer work. The nested works are for the klusterlet of another product, which is simulated: its
changes to the cluster are real.
"""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

import pytest
import yaml

from maestropy import Work
from maestropy.kube.request import Patch, ResourceType, WriteOptions
from maestropy.store.dsn import Dsn
from maestropy.trace.output import Exit
from maestropy.trace.work.query import ManifestQuery, WorkQuery
from maestropy.trace.work.report import exports, render
from maestropy.trace.work.report import work_report as report
from tests import waiting
from tests.stack import trace_fleet
from tests.stack.test_trace_work import APPLIED, CONFIG_MAPS, PATIENCE, id_of, namespace
from tests.stack.trace_fleet import CONSUMER, TracedFleet, config_map

WORKS = ResourceType(
    group="work.open-cluster-management.io", version="v1", plural="manifestworks", kind="ManifestWork", namespaced=True
)
DEFINITIONS = ResourceType(
    group="apiextensions.k8s.io",
    version="v1",
    plural="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
)
HUB = hashlib.sha256(b"https://acm.example:6443").hexdigest()
PLACE = "local-cluster"


def inner(name: str, *manifests: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": PLACE},
        "spec": {"workload": {"manifests": list(manifests)}},
    }


def condition(kind: str, status: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": "Played",
        "message": "",
        "lastTransitionTime": "2026-01-15T09:00:00Z",
    }


@asynccontextmanager
async def nested_stage(database: Dsn) -> AsyncIterator[TracedFleet]:
    """A stage whose cluster knows ManifestWorks."""
    async with trace_fleet.fleet(database) as fleet:
        text = (resources.files("maestropy.agent.crds") / "manifestworks.yaml").read_text()
        await fleet.kube.create(DEFINITIONS, yaml.safe_load(text))

        async def is_served() -> bool:
            try:
                return len(await fleet.kube.list(WORKS)) == 0
            except Exception:
                return False

        await waiting.until(is_served, what="the kind")
        yield fleet


async def klusterlet(fleet: TracedFleet, name: str, resource: ResourceType, *, applied: str = "True") -> None:
    """Do to the cluster what a klusterlet does about one ManifestWork with one manifest."""
    work = await fleet.kube.get(WORKS, name, namespace=PLACE)
    manifest = work["spec"]["workload"]["manifests"][0]
    record = await fleet.kube.create(
        APPLIED,
        {
            "apiVersion": "work.open-cluster-management.io/v1",
            "kind": "AppliedManifestWork",
            "metadata": {"name": f"{HUB}-{name}"},
            "spec": {"hubHash": HUB, "agentID": HUB, "manifestWorkName": name},
        },
    )
    owner = {
        "apiVersion": record["apiVersion"],
        "kind": record["kind"],
        "name": record["metadata"]["name"],
        "uid": record["metadata"]["uid"],
    }
    meta = {**manifest["metadata"], "ownerReferences": [owner]}
    made = await fleet.kube.create(resource, {**manifest, "metadata": meta})
    line = {
        "group": resource.group,
        "version": resource.version,
        "resource": resource.plural,
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": made["metadata"]["uid"],
    }
    await _status(fleet, APPLIED, record, {"appliedResources": [line]})
    said = [condition("Applied", applied), condition("Available", "True")]
    reported = {
        "resourceMeta": {"ordinal": 0, "kind": manifest["kind"], **{k: v for k, v in line.items() if k != "uid"}},
        "conditions": said,
    }
    await _status(fleet, WORKS, work, {"conditions": said, "resourceStatus": {"manifests": [reported]}})


async def _status(fleet: TracedFleet, resource: ResourceType, found: dict[str, Any], status: dict[str, Any]) -> None:
    name, place = found["metadata"]["name"], found["metadata"].get("namespace", "")
    change = Patch(body={"status": status})
    await fleet.kube.patch(resource, name, change=change, namespace=place, write=WriteOptions(subresource="status"))


def codes(found: report.WorkReport) -> list[str]:
    return [work.verdict.code for work in found.works]


@pytest.mark.long
async def test_nested_works_are_followed_down_and_up(database: Dsn) -> None:
    async with nested_stage(database) as fleet:
        works = fleet.client.works(CONSUMER)
        outer = Work("outer").add(namespace(PLACE)).add(inner("first", inner("second", config_map("leaf"))))
        await works.apply(outer)
        await works.wait_for("outer", "Applied", timeout=PATIENCE)
        await klusterlet(fleet, "first", WORKS)
        await klusterlet(fleet, "second", CONFIG_MAPS)

        down = await fleet.ask(WorkQuery(entry="resource-id", values=(id_of("outer"),)))
        assert codes(down) == ["MW-001"], render.text(down)
        first = down.works[0].facts.data.nested[0]
        second = first.nested[0]
        assert [(each.depth, each.namespace, each.name) for each in (first, second)] == [
            (1, PLACE, "first"),
            (2, PLACE, "second"),
        ]
        assert [each.name for each in second.applied] == [f"{HUB}-second"]
        assert [(str(live.key), live.state) for live in second.live_objects] == [("ConfigMap/default/leaf", "present")]
        shown = render.text(down)
        assert "Nested ManifestWork (level 1): local-cluster/first" in shown
        assert "Nested ManifestWork (level 2): local-cluster/second" in shown
        assert "leaf" in exports.tree(down)

        for kind, name, place in (("cm", "leaf", "default"), ("manifestwork", "second", PLACE)):
            query = WorkQuery(entry="manifest", manifest=ManifestQuery(kind=kind, name=name, namespace=place))
            up = await fleet.ask(query)
            assert codes(up) == ["MW-001"], render.text(up)
            row = up.works[0].facts.data.row
            assert row is not None
            assert row.id == id_of("outer")
            assert "first" in " ".join(up.result.steps)

        # A problem of the innermost work is the outer one's.
        work = await fleet.kube.get(WORKS, "second", namespace=PLACE)
        failed = {"conditions": [condition("Applied", "False")]}
        await _status(fleet, WORKS, work, failed)
        broken = await fleet.ask(WorkQuery(entry="work-name", values=("outer",)))
        assert codes(broken) == ["MW-113"], render.text(broken)
        assert broken.exit == Exit.PROBLEM
        assert "second" in " ".join(each.where + each.says for each in broken.works[0].verdict.findings[0].evidence)
