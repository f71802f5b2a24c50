"""Read the cluster of an agent for an archive: applied works, objects, events, the agent's pods and its rights.

The verdict engine itself drives the reading of objects: what it asks for is recorded, so that it finds that offline.
Only GET requests and access reviews, which store nothing, are sent.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from maestropy.diagnose.collection.scope import Scope
from maestropy.diagnose.collection.staging import DocumentFile, Staging
from maestropy.kube import errors
from maestropy.kube.discovery import read_catalogue
from maestropy.kube.request import ObjectSelector, ResourceType
from maestropy.kube.reviews import ACCESS
from maestropy.trace.access.cluster import APPLIED_WORKS, DEPLOYMENTS, TracedCluster, no_access
from maestropy.trace.access.pod_logs import PODS
from maestropy.trace.errors import NoAccess
from maestropy.trace.work.model import Json, Kind

_EVENTS: Final = ResourceType(group="", version="v1", plural="events", kind="Event", namespaced=True)
_MOST_EVENTS: Final = 5000
_MOST_KINDS: Final = 100
_VERBS: Final = ("get", "create", "patch", "delete")
_AGENT: Final = "app=maestro-agent"
_SINGLY: Final = 20
"""Objects of a kind and namespace that are read one by one before the rest is listed."""


class RecordingCluster:
    """A cluster reader that remembers the documents it returned.

    Many objects of one kind and namespace are read by a list instead of one by one. Secrets are listed without their
    data, which then never leaves the cluster.
    """

    def __init__(self, cluster: TracedCluster, *, names: Collection[str]) -> None:
        self.cluster = cluster
        self._names = frozenset(names)
        self._asked: Counter[tuple[str, str, str]] = Counter()
        self._listed: dict[tuple[str, str, str], Mapping[str, Json] | None] = {}
        self._lock = asyncio.Lock()
        self.recorded: dict[tuple[str, str, str, str], Json] = {}
        self.denied: list[Json] = []

    @property
    def label(self) -> str:
        """Its name in reports."""
        return self.cluster.label

    @property
    def consumer(self) -> str:
        """The consumer of the cluster."""
        return self.cluster.consumer

    @property
    def kubectl(self) -> str:
        """The flags that lead kubectl there."""
        return self.cluster.kubectl

    async def applied_works(self, work_names: Collection[str]) -> Sequence[Json]:
        """Return the AppliedManifestWorks of these works."""
        return self._kept(APPLIED_WORKS, await self.cluster.applied_works(work_names))

    async def applied_work(self, name: str) -> Json | None:
        """Return one AppliedManifestWork by its own name."""
        document = await self.cluster.applied_work(name)
        if document is not None:
            self._kept(APPLIED_WORKS, [document])
        return document

    async def kinds(self, spellings: Collection[str], *, group: str) -> Sequence[Kind]:
        """Return the kinds with these spellings."""
        return await self.cluster.kinds(spellings, group=group)

    async def objects(self, kind: Kind, *, namespace: str, name: str) -> Sequence[Json]:
        """Return the objects of that name."""
        try:
            listed = await self._list(kind, namespace) if name in self._names else None
            if listed is not None:
                return self._kept(kind, [listed[name]] if name in listed else [])
            return self._kept(kind, await self.cluster.objects(kind, namespace=namespace, name=name))
        except NoAccess as error:
            # What is not shown is not absent: a reader of the archive has to know the difference.
            fields = {"group": kind.group, "plural": kind.plural, "namespace": namespace, "name": name}
            self.denied.append({"trace": "denied", **fields, "problem": str(error)})
            raise

    async def _list(self, kind: Kind, namespace: str) -> Mapping[str, Json] | None:
        """Return the wanted objects of a kind and namespace; None while they are read one by one."""
        key = (kind.group, kind.plural, namespace)
        self._asked[key] += 1
        if self._asked[key] <= _SINGLY or (kind.namespaced and not namespace):
            return None
        async with self._lock:
            if key not in self._listed:
                self._listed[key] = await self._listed_objects(kind, namespace)
        return self._listed[key]

    async def _listed_objects(self, kind: Kind, namespace: str) -> Mapping[str, Json] | None:
        resource = ResourceType(
            group=kind.group, version=kind.version, plural=kind.plural, kind=kind.kind, namespaced=kind.namespaced
        )
        selector = ObjectSelector(metadata_only=kind.plural == "secrets" and not kind.group)
        found: dict[str, Json] = {}
        try:
            async for page in self.cluster.client.pages(resource, namespace=namespace, selector=selector):
                missing = {
                    "apiVersion": resource.api_version,
                    "kind": str(page.get("kind", "")).removesuffix("List") if not kind.kind else kind.kind,
                }
                for item in page.get("items") or ():
                    name = str((item.get("metadata") or {}).get("name", ""))
                    if name in self._names:
                        found[name] = {**item, **missing}
        except errors.KubeError:
            return None  # each is asked for by itself, and its own answer counts
        return found

    async def agent_consumer(self) -> str:
        """Return the consumer of the agent on this cluster."""
        return await self.cluster.agent_consumer()

    def _kept(self, kind: Kind | ResourceType, documents: Sequence[Json]) -> Sequence[Json]:
        for document in documents:
            metadata = document.get("metadata") or {}
            key = (kind.group, kind.plural, str(metadata.get("namespace", "")), str(metadata.get("name")))
            # The engine asks by the plural, which an object does not have.
            self.recorded[key] = {**document, "trace_plural": kind.plural}
        return documents


async def collect_cluster(
    recording: RecordingCluster, staging: Staging, folder: str, *, scope: Scope
) -> tuple[Sequence[str], str]:
    """Write what was recorded, and the rest of a cluster; return what could not be read, and a note."""
    try:
        return await _collect_cluster(recording, staging, folder, scope=scope)
    except errors.KubeError as error:
        raise no_access(error, label=recording.label, action="read it") from error


async def _collect_cluster(
    recording: RecordingCluster, staging: Staging, folder: str, *, scope: Scope
) -> tuple[Sequence[str], str]:
    cluster, recorded = recording.cluster, list(recording.recorded.values())
    problems = [f"{len(recording.denied)} objects: {recording.denied[0]['problem']}"] if recording.denied else []
    version = await cluster.can_reach()
    catalogue = await read_catalogue(cluster.client, known={})
    kinds: dict[tuple[str, str], list[ResourceType]] = {}
    for kind in catalogue.values():
        kinds.setdefault((kind.group, kind.plural), []).append(kind)
    staging.documents(f"{folder}/kinds.jsonl", [_kind_document(served) for served in kinds.values()])
    consumer = cluster.consumer or await cluster.agent_consumer()
    facts = {
        "trace": "cluster",
        "label": cluster.label,
        "consumer": consumer,
        "version": version,
        "ahead_seconds": cluster.client.clock_skew_seconds,
    }
    staging.document(f"{folder}/cluster.jsonl", facts)
    with DocumentFile(staging, f"{folder}/objects.jsonl") as file:
        for document in (*recorded, *recording.denied):
            file.add(document)
    if not scope.work:
        problems += await _collect_applied_works(cluster, staging, folder)
    problems += await _collect_events(cluster, staging, folder, recorded=recorded, scope=scope)
    more, note = await _collect_agent(cluster, staging, folder, recorded=recorded)
    return [*problems, *more], note


def _kind_document(served: Sequence[ResourceType]) -> Json:
    kind = served[0]
    return {
        "trace": "kind",
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "plural": kind.plural,
        "namespaced": kind.namespaced,
        "versions": [resource.version for resource in served],
    }


async def _collect_applied_works(cluster: TracedCluster, staging: Staging, folder: str) -> Sequence[str]:
    """Write all AppliedManifestWorks: also those whose work the database does not have."""
    try:
        with DocumentFile(staging, f"{folder}/appliedmanifestworks.jsonl") as file:
            async for page in cluster.client.pages(APPLIED_WORKS):
                for document in page.get("items") or ():
                    file.add({"apiVersion": APPLIED_WORKS.api_version, "kind": APPLIED_WORKS.kind, **document})
    except errors.KubeError as error:
        return [f"AppliedManifestWorks: {error.message}"]
    return []


async def _collect_events(
    cluster: TracedCluster, staging: Staging, folder: str, *, recorded: Sequence[Json], scope: Scope
) -> Sequence[str]:
    """Write the events about the agent and about the objects of works."""
    wanted = {(_text(item, "namespace"), _text(item, "name")) for item in recorded}
    count = 0
    try:
        with DocumentFile(staging, f"{folder}/events.jsonl") as file:
            async for page in cluster.client.pages(_EVENTS):
                for event in page.get("items") or ():
                    about = event.get("involvedObject") or {}
                    key = (str(about.get("namespace", "")), str(about.get("name", "")))
                    is_agents = key[0] == cluster.target.agent_namespace
                    if (is_agents or key in wanted) and _is_in(event, scope):
                        file.add(event)
                        count += 1
                    if count >= _MOST_EVENTS:
                        return [f"events: only the first {_MOST_EVENTS}"]
    except errors.KubeError as error:
        return [f"events: {error.message}"]
    return []


def _is_in(event: Json, scope: Scope) -> bool:
    stamp = (
        event.get("lastTimestamp") or event.get("eventTime") or (event.get("metadata") or {}).get("creationTimestamp")
    )
    try:
        return scope.has(datetime.fromisoformat(str(stamp)).timestamp()) if stamp else True
    except ValueError:
        return True


async def _collect_agent(
    cluster: TracedCluster, staging: Staging, folder: str, *, recorded: Sequence[Json]
) -> tuple[Sequence[str], str]:
    """Write the agent's Deployment and pods, and what its service account may do with the kinds of the works."""
    namespace = cluster.target.agent_namespace
    selector = ObjectSelector(labels=_AGENT)
    try:
        deployments = await cluster.client.list(DEPLOYMENTS, namespace=namespace, selector=selector)
        pods = await cluster.client.list(PODS, namespace=namespace, selector=selector)
    except errors.KubeError as error:
        return [f"the agent's pods: {error.message}"], ""
    staging.documents(
        f"{folder}/agent.jsonl",
        [
            *({"apiVersion": "apps/v1", "kind": "Deployment", **item} for item in deployments),
            *({"apiVersion": "v1", "kind": "Pod", **item} for item in pods),
        ],
    )
    accounts = {
        str(((item.get("spec") or {}).get("template") or {}).get("spec", {}).get("serviceAccountName", "default"))
        for item in deployments
    }
    if not accounts:
        # It may run on another cluster or computer; that is no failure.
        return [], f"no Deployment with {_AGENT} in namespace {namespace}, so the agent's rights are not asked for"
    return await _collect_rights(cluster, staging, folder, accounts=accounts, recorded=recorded), ""


async def _collect_rights(
    cluster: TracedCluster, staging: Staging, folder: str, *, accounts: Collection[str], recorded: Sequence[Json]
) -> Sequence[str]:
    namespace = cluster.target.agent_namespace
    kinds = sorted({(_group(item), str(item.get("trace_plural")), _text(item, "namespace")) for item in recorded})
    answers: list[dict[str, Any]] = []
    problem = ""
    for account in sorted(accounts):
        user = f"system:serviceaccount:{namespace}:{account}"
        for group, plural, object_namespace in kinds[:_MOST_KINDS]:
            for verb in _VERBS:
                attributes = {"group": group, "resource": plural, "namespace": object_namespace, "verb": verb}
                spec = {"user": user, "resourceAttributes": attributes}
                try:
                    review = await cluster.client.create(
                        ACCESS, {"apiVersion": ACCESS.api_version, "kind": ACCESS.kind, "spec": spec}
                    )
                except errors.KubeError as error:
                    problem = f"the agent's rights: {error.message}"
                    break
                is_allowed = (review.get("status") or {}).get("allowed") is True
                answers.append({"trace": "right", "user": user, **attributes, "allowed": is_allowed})
            if problem:
                break
    staging.documents(f"{folder}/rights.jsonl", answers)
    return [problem] if problem else []


def _text(document: Json, key: str) -> str:
    return str((document.get("metadata") or {}).get(key, ""))


def _group(document: Json) -> str:
    return str(document.get("apiVersion", "")).rpartition("/")[0]
