"""A transport in memory for tasks: works with the objects that an agent read back, on a far or a local cluster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maestropy.adapter.decide import ownership
from maestropy.adapter.decide.adapter_status import AdapterStatus
from maestropy.adapter.decide.effects import CallApi, Effect, EffectResult, ReadSurroundings, Surroundings
from maestropy.adapter.event import Event
from maestropy.adapter.resource import Resource, parse
from maestropy.adapter.transports.performer import LivePerformer
from maestropy.sdk import targeting
from maestropy.sdk.work import Work

NOW = "2026-09-01T10:00:00+00:00"


def stored_work(work: Work, *, written: int, mirrored: int | None, phase: str = "Active") -> Work:
    """A work as it is stored: the generation that was written, and the object that was read back."""
    body = work.with_annotations({ownership.GENERATION: str(written)}).to_dict()
    manifest = body["spec"]["workload"]["manifests"][0]
    metadata = {**body["metadata"], "namespace": "abc", "generation": 3, "resourceVersion": "3"}
    return Work.from_dict({**body, "metadata": metadata, "status": _status(manifest, mirrored, phase=phase)})


def _status(manifest: Mapping[str, Any], mirrored: int | None, *, phase: str) -> dict[str, Any]:
    if mirrored is None:
        return {}
    values = [{"name": "generation", "fieldValue": {"type": "String", "string": str(mirrored)}}]
    if manifest["kind"] == "Namespace":
        raw = f'{{"phase":"{phase}"}}'
        values.append({"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": raw}})
    metadata = manifest["metadata"]
    meta = {"kind": manifest["kind"], "name": metadata["name"], "namespace": metadata.get("namespace", "")}
    conditions = [{"type": kind, "status": "True", "reason": "Ok"} for kind in ("Applied", "Available")]
    reported = {"resourceMeta": meta, "conditions": conditions, "statusFeedback": {"values": values}}
    return {"conditions": conditions, "resourceStatus": {"manifests": [reported]}}


class Mirrors:
    """A transport whose objects are those of its works; a far one keeps what is being deleted, a local one does not."""

    def __init__(self, works: Sequence[Work], *, is_local: bool) -> None:
        self.works = {work.name: work for work in works}
        self.is_local = is_local
        self.operations: list[str] = []

    async def query(self, *, labels: Mapping[str, str], consumer: str, name: str) -> Sequence[Work]:
        assert labels or consumer
        return [work for work in self.works.values() if name in ("", work.name)]

    async def create(self, work: Work, *, consumer: str) -> Work:
        return self._write(work, consumer)

    async def patch(self, work: Work, *, consumer: str, patch: Mapping[str, Any], version: int) -> Work:
        assert patch["metadata"]["annotations"][ownership.GENERATION]
        assert version == self.works[work.name].version
        return self._write(work, consumer)

    def _write(self, work: Work, consumer: str) -> Work:
        kind = work.manifest_work.manifests[0]["kind"]
        self.operations.append(f"apply {kind}")
        body = work.to_dict()
        metadata = {**body["metadata"], "namespace": consumer, "generation": 4, "resourceVersion": "4"}
        self.works[work.name] = Work.from_dict({**body, "metadata": metadata})
        return self.works[work.name]

    async def delete(self, name: str, *, consumer: str) -> None:
        assert consumer
        work = self.works[name]
        self.operations.append(f"delete {work.manifest_work.manifests[0]['kind']}")
        if self.is_local:
            del self.works[name]
            return
        body = work.to_dict()
        self.works[name] = Work.from_dict(
            {**body, "metadata": {**body["metadata"], "deletionTimestamp": "2026-09-01T00:00:00Z"}}
        )

    async def wait(
        self, *, labels: Mapping[str, str], until: Callable[[Sequence[Work]], bool], seconds: float
    ) -> Sequence[Work]:
        raise AssertionError(f"nothing is waited for here: {labels} {until} {seconds}")


class Api:
    """The HyperFleet API: one resource, the responses to other requests, and what was sent."""

    def __init__(self, resource: Mapping[str, Any], responses: Mapping[str, Any] | None = None) -> None:
        self.resource = resource
        self.responses = dict(responses or {})
        self.statuses: list[AdapterStatus] = []
        self.calls: list[CallApi] = []

    async def fetch(self, event: Event) -> Resource | None:
        return parse(self.resource, event) if self.resource else None

    async def put_status(self, event: Event, resource: Resource, status: AdapterStatus) -> None:
        assert event.resource_id == resource.id
        self.statuses.append(status)

    async def call(self, effect: CallApi) -> Any:
        self.calls.append(effect)
        response = self.responses[f"{effect.method} {effect.url}"]
        if isinstance(response, Exception):
            raise response
        return response


class TaskPerformer:
    """Carries out the effects of a task; the surroundings are given."""

    def __init__(self, mirrors: Mirrors, api: Api, **variables: str) -> None:
        self._live = LivePerformer(transport=mirrors, resource_api=api, target=targeting.static("cluster1"))
        self._variables = variables
        self.files: dict[str, str] = {}

    async def perform(self, effect: Effect) -> EffectResult:
        if isinstance(effect, ReadSurroundings):
            known = {name: self._variables[name] for name in effect.variables if name in self._variables}
            files = {path: self.files[path] for path in effect.files if path in self.files}
            return Surroundings(now=NOW, variables=known, files=files)
        return await self._live.perform(effect)
