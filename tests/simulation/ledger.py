"""The rules that must always hold, checked at every commit of the database and every change of a cluster.

Each rule has a name under which a violation is reported; `docs/simulation.md` lists them. The first violation ends a
run.
"""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from maestropy.agent.decide import data_safety
from maestropy.sandbox.kubeapi.storage.store import StoredObject, StoreEvent
from maestropy.wire import ordering
from tests.simulation import memory_history, memory_rows
from tests.simulation.memory_cluster import APPLIED_MANIFEST_WORKS, CONFIG_MAPS, MemoryCluster
from tests.simulation.memory_postgres import Change, Engine, Row
from tests.simulation.sources import NO_ANSWER, Answer, Content, SimulatedResource

_PENDING_AT_MOST = 4
"""One pending event, and those that instances were about to send when it was written."""


_CHANGES = frozenset(("work.created", "work.updated", "work.deletion-requested", "work.deleted"))


class Violation(Exception):
    """A rule was broken."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@dataclass(kw_only=True)
class Incarnation:
    """A resource from its creation to its removal; a later one of the same ID is another incarnation."""

    resource: SimulatedResource
    database_id: str = ""
    created_at: Any = None
    tokens: dict[int, str] = field(default_factory=dict)
    """The token of each version."""
    lost_tokens: dict[int, str] = field(default_factory=dict)
    """Those of versions that the database has lost."""
    is_over: bool = False
    is_lost: bool = False
    """Whether the database has lost it: an older backup was restored, or the database was replaced."""
    is_deletion_requested: bool = False
    """Whether a deletion was ever stored, also one that was lost later."""
    leaving: set[str] = field(default_factory=set)
    removed: dict[str, int] = field(default_factory=dict)
    """Objects that were removed after the deletion was requested, with the version of their content."""

    def version_of(self, stored: StoredObject) -> int:
        """Return the version that the content of an object belongs to; 0 if it is none of this incarnation."""
        token = (stored.obj.get("data") or {}).get("token")
        return max((version for version, known in self.tokens.items() if known == token), default=0)


@dataclass(frozen=True, kw_only=True)
class SpecRequest:
    """A create request, or an update request on top of a version."""

    resource: SimulatedResource
    content: Content
    base: int | None
    incarnations: int
    """How many incarnations there had been when the request was first published."""
    is_id_taken: bool
    """Whether one of them existed then."""
    upheavals: int
    """How often the database had lost something then."""


@dataclass(eq=False)
class Ledger:
    """The rules of one run."""

    engine: Engine
    resources: dict[str, SimulatedResource]
    clusters: dict[str, MemoryCluster]
    incarnations: dict[str, list[Incarnation]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    log_line: Any = None
    contents: dict[str, Content] = field(default_factory=dict)
    """What was requested, by token."""
    upheavals: int = 0
    """How often the database has lost something."""
    is_adopted: bool = False
    """Whether an operator has agreed that the database decides, whatever it has lost."""
    is_drifting: bool = False
    """Whether another client is changing the cluster."""

    def __post_init__(self) -> None:
        self.watch(self.engine)
        for consumer, cluster in self.clusters.items():
            cluster.store.add_event_handler(functools.partial(self._happened, consumer))

    def watch(self, engine: Engine) -> None:
        """Check the commits of a database."""
        engine.committed.append(functools.partial(self._committed_in, engine))

    def _committed_in(self, engine: Engine, changes: Sequence[Change]) -> None:
        if engine is self.engine:
            self._committed(changes)
            return
        for change in changes:
            if change.table == "resources" and memory_rows.content(change.before) != memory_rows.content(change.after):
                name = self.resources[change.key].name
                self._break("one-cell-decides", f"{name}: {engine.database_id} has changed it, which does not own it")

    def moved(self, old: Engine, new: Engine) -> None:
        """Compare the cells of a move when it is decided: from now on the new one owns the resources."""
        self.engine = new
        for id_, row in old.tables["resources"].items():
            if memory_rows.content(row) != memory_rows.content(new.tables["resources"].get(id_)):
                name = self.resources[id_].name
                self._break("acknowledged-is-stored", f"{name}: the new cell does not have it as the old one did")
        for incarnations in self.incarnations.values():
            for incarnation in incarnations:
                incarnation.database_id = new.database_id

    def origins(self, consumer: str) -> dict[str, str]:
        """Return from which database the agent of a consumer has applied each of its works, by ID.

        Without those that it deletes: a finalizer may hold their objects for long.
        """
        works = self.clusters[consumer].store.select(APPLIED_MANIFEST_WORKS, "")
        origins = {each.name: data_safety.read_origin(each.obj) for each in works if not _is_leaving(each)}
        return {
            id_: origin.database
            for id_ in self.resources
            for name, origin in origins.items()
            if name.endswith(f"-{id_}") and origin is not None
        }

    def answered(self, request: SpecRequest, answer: Answer) -> None:
        """Check the answer to a request: accepted requests are stored, rejected ones are not."""
        resource, content, base = request.resource, request.content, request.base
        if answer.text == NO_ANSWER:
            self._break("progress", f"{resource.name}: no server answered")
        if request.upheavals != self.upheavals:
            return  # the database may have lost it since it was stored
        if not answer.accepted:
            self._rejected(request, answer)
            return
        versions = [
            version
            for incarnation in self.incarnations.get(resource.id, [])
            for version, t in incarnation.tokens.items()
            if t == content.token
        ]
        if not versions:
            self._break("acknowledged-is-stored", f"{resource.name}: {content.token} was accepted and is nowhere")
        elif base and set(versions) != {base + 1}:
            self._break("one-winner", f"{resource.name}: {content.token} upon version {base} became {versions}")

    def request(self, resource: SimulatedResource, content: Content, *, base: int | None) -> SpecRequest:
        """Note that a source starts to publish a request."""
        return SpecRequest(
            resource=resource,
            content=content,
            base=base,
            incarnations=len(self.incarnations.get(resource.id, ())),
            is_id_taken=self.current(resource) is not None,
            upheavals=self.upheavals,
        )

    def _rejected(self, request: SpecRequest, answer: Answer) -> None:
        """Check that a rejected request is not stored.

        Another copy of the request may be carried out later than the rejected one, on the next incarnation: an update
        on one that was created meanwhile, a creation when the resource that had the ID was removed meanwhile.
        """
        resource = request.resource
        row = self.engine.tables["resources"].get(resource.id)
        own = 1 if request.base is None and not request.is_id_taken else 0
        is_same_incarnation = len(self.incarnations.get(resource.id, ())) <= request.incarnations + own
        if (
            is_same_incarnation
            and row is not None
            and row["deleted_at"] is None
            and _token(row) == request.content.token
        ):
            self._break(
                "rejected-is-not-stored", f"{resource.name}: {request.content.token} is stored; but: {answer.text}"
            )

    def database_changed(self) -> None:
        """Compare with the database, which has lost something: an older backup was restored, or it was replaced."""
        self.upheavals += 1
        for id_, incarnations in self.incarnations.items():
            row = self.engine.tables["resources"].get(id_)
            for incarnation in incarnations:
                _compare(incarnation, row, database_id=self.engine.database_id)

    def deletion_accepted(
        self, resource: SimulatedResource, incarnation: Incarnation | None, answer: Answer, *, upheavals: int
    ) -> None:
        """Check the answer to a delete request; `upheavals` as it was when the request was first published."""
        if upheavals != self.upheavals:
            return
        if answer.text == NO_ANSWER:
            self._break("progress", f"{resource.name}: no server answered")
        row = self.engine.tables["resources"].get(resource.id)
        is_same_incarnation = incarnation is not None and incarnation is self.current(resource)
        if answer.accepted and is_same_incarnation and row is not None and row["deleted_at"] is None:
            self._break("acknowledged-is-stored", f"{resource.name}: its deletion was accepted and is not marked")

    def current(self, resource: SimulatedResource) -> Incarnation | None:
        """Return the incarnation that exists."""
        existing = [
            incarnation
            for incarnation in self.incarnations.get(resource.id, ())
            if not incarnation.is_over and not incarnation.is_lost
        ]
        return existing[-1] if existing else None

    def _break(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))
        if self.log_line:
            self.log_line(f"VIOLATION {rule}: {what}")

    def _committed(self, changes: Sequence[Change]) -> None:
        self._check_history(changes)
        has_new_events = False
        for change in changes:
            if change.table == "resources":
                self._row_changed(change)
            has_new_events |= change.table == "events" and change.before is None
        if has_new_events:
            self._count_pending()

    def _check_history(self, changes: Sequence[Change]) -> None:
        """Check that the history records what this commit changes, and nothing else."""
        recorded = Counter(
            (change.after["subject_id"], change.after["kind"])
            for change in changes
            if change.table == memory_history.TABLE and change.after is not None and change.after["subject_id"]
        )
        recorded = Counter({key: count for key, count in recorded.items() if key[1] in _CHANGES})
        changed = Counter(
            (change.key, kind) for change in changes if change.table == "resources" for kind in _kinds(change)
        )
        if recorded != changed:
            self._break("history-of-changes", f"a commit changes {dict(changed)} and records {dict(recorded)}")

    def _count_pending(self) -> None:
        pending = Counter(r["source_id"] for r in self.engine.tables["events"].values() if r["reconciled_date"] is None)
        for id_, count in pending.items():
            if count > _PENDING_AT_MOST:
                self._break("bounded-queue", f"{self.resources[id_].name}: {count} events are pending for it")

    def _row_changed(self, change: Change) -> None:
        resource, before, after = self.resources[change.key], change.before, change.after
        if self.log_line:
            self.log_line(f"database: {resource.name} {_shown(before)} -> {_shown(after)}")
        if before is None:
            assert after is not None
            incarnation = Incarnation(
                resource=resource,
                database_id=self.engine.database_id,
                created_at=after["created_at"],
                tokens={after["version"]: _token(after)},
            )
            self.incarnations.setdefault(resource.id, []).append(incarnation)
            return
        current = self.current(resource)
        assert current is not None
        incarnation = current
        if after is not None and after["deleted_at"] is not None:
            incarnation.is_deletion_requested = True
        if after is None:
            self._row_removed(resource, incarnation, before)
            return
        if after["version"] != before["version"]:
            incarnation.tokens[after["version"]] = _token(after)
            if after["version"] != before["version"] + 1:
                self._break("versions-grow", f"{resource.name}: {before['version']} became {after['version']}")
        if before["deleted_at"] is not None and after["deleted_at"] != before["deleted_at"]:
            self._break("deletion-stays", f"{resource.name}: its deletion was taken back")
        self._status_changed(resource, before, after)

    def _status_changed(self, resource: SimulatedResource, before: Row, after: Row) -> None:
        if after["status"] == before["status"]:
            return
        old, new = _status(before), _status(after)
        if old and not ordering.is_newer(str(new["sequenceid"]), str(old["sequenceid"])):
            self._break("statuses-grow", f"{resource.name}: an older status update replaced a newer one")
        if old and int(new["resourceversion"]) < int(old["resourceversion"]):
            self._break("statuses-grow", f"{resource.name}: a status of an older version replaced one of a newer")

    def _row_removed(self, resource: SimulatedResource, incarnation: Incarnation, before: Row) -> None:
        incarnation.is_over = True
        if before["deleted_at"] is None:
            self._break("gone-only-after-deletion", f"{resource.name}: its deletion was not requested")
        left = [
            name
            for name, stored in self.clusters[resource.consumer].config_maps().items()
            if _is_part(name, resource) and not self._is_of_lost_incarnation(resource, stored)
        ]
        if left:
            self._break(
                "gone-only-after-deletion", f"{resource.name}: its row was removed while {left} are on the cluster"
            )

    def _is_of_lost_incarnation(self, resource: SimulatedResource, stored: StoredObject) -> bool:
        """Whether an object belongs to an incarnation that the database has lost, and not to the one it has."""
        place = self._place(resource, stored)
        return place is not None and self.incarnations[resource.id][place[0]].is_lost

    def _happened(self, consumer: str, happened: StoreEvent) -> None:
        stored = happened.last
        if stored.resource != CONFIG_MAPS or stored.namespace != "default":
            return
        if self.log_line:
            what = "created" if happened.before is None else "removed" if happened.after is None else "changed"
            self.log_line(f"cluster {consumer}: {stored.name} {what} token={stored.obj.get('data', {}).get('token')}")
        resource = next(
            (b for b in self.resources.values() if b.consumer == consumer and _is_part(stored.name, b)), None
        )
        if resource is None:
            return
        row = self.engine.tables["resources"].get(resource.id)
        incarnation = self.current(resource)
        if incarnation is not None and row is not None and row["deleted_at"] is not None:
            self._note_leaving(incarnation, happened)
        self._check_removal(resource, happened)
        if happened.after is None:
            return
        if happened.before is None and incarnation is None and not self._has_lost(resource):
            self._break("deleted-stays-away", f"{resource.name}: {stored.name} came back after the removal")
        elif (
            happened.before is None
            and incarnation is not None
            # A wrong database, from which the servers are back, has asked for it.
            and not self._is_of_lost_incarnation(resource, stored)
            and self._is_unwanted_return(incarnation, stored)
        ):
            self._break("deleted-stays-away", f"{resource.name}: {stored.name} came back while it is being deleted")
        self._check_order(resource, happened)

    def _is_unwanted_return(self, incarnation: Incarnation, created: StoredObject) -> bool:
        """Whether an object is created that was removed because of the deletion of its resource.

        It may have been removed because a version of the resource does not have it. When a later version has it again,
        an agent creates it again, as long as the deletion, which the database has already, has not reached the agent.
        """
        if created.name not in incarnation.removed:
            return False
        part = int(created.name.rpartition("-")[2])
        between = range(incarnation.removed[created.name] + 1, incarnation.version_of(created))
        is_pruned = any(
            self.contents[token].parts <= part for version, token in incarnation.tokens.items() if version in between
        )
        return not is_pruned

    def _has_lost(self, resource: SimulatedResource) -> bool:
        """Whether agents may still apply an incarnation that the database has lost."""
        return any(incarnation.is_lost for incarnation in self.incarnations.get(resource.id, ()))

    def _check_removal(self, resource: SimulatedResource, happened: StoreEvent) -> None:
        """Check that an object is removed only because a source wanted it: never on ignorance."""
        before, after = happened.before, happened.after
        if before is None or _is_leaving(before) or (after is not None and not _is_leaving(after)):
            return
        if self._place(resource, before) is None or self.is_drifting or self.is_adopted:
            return
        incarnations, part = self.incarnations[resource.id], int(before.name.rpartition("-")[2])
        token = before.obj["data"]["token"]
        # A request that is repeated after an upheaval may be stored twice: either of the two may have been deleted.
        for number, incarnation in enumerate(incarnations):
            if token not in (*incarnation.tokens.values(), *incarnation.lost_tokens.values()):
                continue
            later = [each for each in incarnations[number:] if each.database_id == incarnation.database_id]
            if any(each.is_deletion_requested or self._drops(each, part) for each in later):
                return
        self._break("kept-on-ignorance", f"{resource.name}: {before.name} is deleted, and no source wanted that")

    def _drops(self, incarnation: Incarnation, part: int) -> bool:
        """Whether a version of an incarnation does not have a part of the content."""
        tokens = (*incarnation.tokens.values(), *incarnation.lost_tokens.values())
        return any(self.contents[token].parts <= part for token in tokens)

    def _note_leaving(self, incarnation: Incarnation, happened: StoreEvent) -> None:
        """Note objects that are removed because of the deletion; one that was being removed before may come back."""
        name, was_leaving = happened.last.name, happened.before is not None and _is_leaving(happened.before)
        if happened.after is not None and _is_leaving(happened.after) and not was_leaving:
            incarnation.leaving.add(name)
        if happened.after is None and (name in incarnation.leaving or not was_leaving):
            incarnation.removed[name] = incarnation.version_of(happened.last)

    def _check_order(self, resource: SimulatedResource, happened: StoreEvent) -> None:
        before, after = self._place(resource, happened.before), self._place(resource, happened.after)
        if self.is_adopted or (self.upheavals and _number(happened.after) > _number(happened.before)):
            return  # published later, under a version or in an incarnation that the database had lost
        if before and after and after < before and not self._is_unfinished(resource, *before):
            self._break("applied-grows", f"{resource.name}: {happened.last.name} went from {before} back to {after}")

    def _is_unfinished(self, resource: SimulatedResource, incarnation: int, version: int) -> bool:
        """Whether a version that the database has lost is not recorded as applied: its agent was killed before.

        Half of its objects may have it. The agent then applies what the database has, so that all of them are of one
        version again.
        """
        if version not in self.incarnations[resource.id][incarnation].lost_tokens:
            return False
        works = self.clusters[resource.consumer].store.select(APPLIED_MANIFEST_WORKS, "")
        origins = [data_safety.read_origin(each.obj) for each in works if each.name.endswith(f"-{resource.id}")]
        return not any(origin is not None and origin.version >= version for origin in origins)

    def _place(self, resource: SimulatedResource, stored: StoredObject | None) -> tuple[int, int] | None:
        """Return the incarnation and the version that an object's content belongs to.

        The latest that has it: an update that is repeated after a deletion and a creation counts for the successor,
        since both begin with version 1.
        """
        token = (stored.obj.get("data") or {}).get("token") if stored is not None else None
        for number, incarnation in reversed(list(enumerate(self.incarnations.get(resource.id, [])))):
            for version, known in (*incarnation.tokens.items(), *incarnation.lost_tokens.items()):
                if known == token:
                    return number, version
        return None


def _compare(incarnation: Incarnation, row: Row | None, *, database_id: str) -> None:
    """Note what of an incarnation the database has, and what it has lost."""
    has_row = row is not None and (row["created_at"], database_id) == (incarnation.created_at, incarnation.database_id)
    if row is None or not has_row:
        incarnation.is_lost = not incarnation.is_over
        return
    incarnation.is_over = incarnation.is_lost = False
    incarnation.leaving.clear()
    incarnation.removed.clear()
    known = incarnation.tokens | incarnation.lost_tokens
    incarnation.tokens = {version: token for version, token in known.items() if version <= row["version"]}
    incarnation.lost_tokens = {version: token for version, token in known.items() if version > row["version"]}
    incarnation.tokens[row["version"]] = _token(row)


def _number(stored: StoredObject | None) -> int:
    """Return when the content of an object was published: tokens are numbered."""
    token = str((stored.obj.get("data") or {}).get("token", "")) if stored is not None else ""
    number = token.rpartition(".")[2]
    return int(number) if number.isdecimal() else 0


def _is_leaving(stored: StoredObject) -> bool:
    return bool(stored.obj["metadata"].get("deletionTimestamp"))


def _is_part(name: str, resource: SimulatedResource) -> bool:
    return name.rpartition("-")[0] == resource.name


def _token(row: Row) -> str:
    manifests = msgspec.json.decode(row["data"]).get("manifests") or [{}]
    return str(manifests[0].get("data", {}).get("token", ""))


def _status(row: Row) -> dict[str, Any]:
    return msgspec.json.decode(row["status"]) if row["status"] else {}


def _kinds(change: Change) -> list[str]:
    """Return what the history has to record of a changed row."""
    before, after = change.before, change.after
    if after is None:
        return ["work.deleted"] if before is not None else []
    if before is None:
        return ["work.created"]
    updated = ["work.updated"] if before["version"] != after["version"] else []
    is_newly_deleting = before["deleted_at"] is None and after["deleted_at"] is not None
    return updated + (["work.deletion-requested"] if is_newly_deleting else [])


def _shown(row: Row | None) -> str:
    if row is None:
        return "-"
    said = _status(row)
    observed = f" status of {said['resourceversion']}" if said else ""
    return f"v{row['version']}{' deleting' if row['deleted_at'] else ''}{observed}"
