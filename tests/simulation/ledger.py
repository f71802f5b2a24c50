"""What must always be true, looked at with every commit of the database and every change of a cluster.

Each rule has a name under which a violation is reported; `docs/simulation.md` lists them. The first violation ends a
run: what follows it would only be noise.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from simulation.memory_cluster import CONFIG_MAPS, MemoryCluster
from simulation.memory_postgres import Change, Engine, Row
from simulation.sources import NOBODY, Answer, Bundle, Content

from maestropy.sandbox.kubeapi.store import Event, Stored
from maestropy.wire import order

_PENDING_AT_MOST = 4
"""One event that waits, and those that instances were about to send when it was written."""


class Violation(Exception):
    """Something was seen that must never be."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f"{rule}: {what}")
        self.rule = rule


@dataclass(kw_only=True)
class Life:
    """A bundle from its creation to its end; a later one of the same id is another life."""

    bundle: Bundle
    tokens: dict[int, str] = field(default_factory=dict)
    """What each version consists of."""
    is_over: bool = False
    leaving: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    """Objects that went after the deletion was asked for."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a source asks for: a creation, or an update upon a version."""

    bundle: Bundle
    content: Content
    base: int | None
    lives: int
    """How many bundles of that id there had been when it began to ask."""


@dataclass(eq=False)
class Ledger:
    """Keeps the books of one run."""

    engine: Engine
    bundles: dict[str, Bundle]
    clusters: dict[str, MemoryCluster]
    lives: dict[str, list[Life]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    told: Any = None

    def __post_init__(self) -> None:
        self.engine.committed.append(self._committed)
        for consumer, cluster in self.clusters.items():
            cluster.store.listen(lambda happened, consumer=consumer: self._happened(consumer, happened))

    def answered(self, wish: Wish, answer: Answer) -> None:
        """Note what a source was told: that its wish is safe, or that it is refused."""
        bundle, content, base = wish.bundle, wish.content, wish.base
        if answer.text == NOBODY:
            self._break("progress", f"{bundle.name}: nobody answered")
        if not answer.accepted:
            self._refused(wish, answer)
            return
        versions = [
            version
            for life in self.lives.get(bundle.id, [])
            for version, t in life.tokens.items()
            if t == content.token
        ]
        if not versions:
            self._break("acknowledged-is-stored", f"{bundle.name}: {content.token} was accepted and is nowhere")
        elif base and set(versions) != {base + 1}:
            self._break("one-winner", f"{bundle.name}: {content.token} upon version {base} became {versions}")

    def wish(self, bundle: Bundle, content: Content, *, base: int | None) -> Wish:
        """Note that a source begins to ask for something."""
        return Wish(bundle=bundle, content=content, base=base, lives=len(self.lives.get(bundle.id, ())))

    def _refused(self, wish: Wish, answer: Answer) -> None:
        bundle = wish.bundle
        row = self.engine.tables["resources"].get(bundle.id)
        # A repetition may be carried out upon a later life of the id, when the answer is long on its way.
        is_same_life = len(self.lives.get(bundle.id, ())) <= wish.lives + (wish.base is None)
        if is_same_life and row is not None and row["deleted_at"] is None and _token(row) == wish.content.token:
            self._break("refused-is-not-stored", f"{bundle.name}: {wish.content.token} is stored; but: {answer.text}")

    def deletion_accepted(self, bundle: Bundle, life: Life | None, answer: Answer) -> None:
        """Note that a source was told that its bundle will go."""
        if answer.text == NOBODY:
            self._break("progress", f"{bundle.name}: nobody answered")
        row = self.engine.tables["resources"].get(bundle.id)
        is_same_life = life is not None and life is self.current(bundle)
        if answer.accepted and is_same_life and row is not None and row["deleted_at"] is None:
            self._break("acknowledged-is-stored", f"{bundle.name}: its deletion was accepted and is not marked")

    def current(self, bundle: Bundle) -> Life | None:
        """Return the life that goes on."""
        lives = self.lives.get(bundle.id)
        return lives[-1] if lives and not lives[-1].is_over else None

    def _break(self, rule: str, what: str) -> None:
        self.violations.append(Violation(rule, what))
        if self.told:
            self.told(f"VIOLATION {rule}: {what}")

    def _committed(self, changes: Sequence[Change]) -> None:
        is_queue_changed = False
        for change in changes:
            if change.table == "resources":
                self._row_changed(change)
            is_queue_changed |= change.table == "events" and change.before is None
        if is_queue_changed:
            self._count_pending()

    def _count_pending(self) -> None:
        pending = Counter(r["source_id"] for r in self.engine.tables["events"].values() if r["reconciled_date"] is None)
        for id_, count in pending.items():
            if count > _PENDING_AT_MOST:
                self._break("bounded-queue", f"{self.bundles[id_].name}: {count} events wait for it")

    def _row_changed(self, change: Change) -> None:
        bundle, before, after = self.bundles[change.key], change.before, change.after
        if self.told:
            self.told(f"database: {bundle.name} {_shown(before)} -> {_shown(after)}")
        if before is None:
            assert after is not None
            life = Life(bundle=bundle, tokens={after["version"]: _token(after)})
            self.lives.setdefault(bundle.id, []).append(life)
            return
        life = self.lives[bundle.id][-1]
        if after is None:
            self._row_removed(bundle, life, before)
            return
        if after["version"] != before["version"]:
            life.tokens[after["version"]] = _token(after)
            if after["version"] != before["version"] + 1:
                self._break("versions-grow", f"{bundle.name}: {before['version']} became {after['version']}")
        if before["deleted_at"] is not None and after["deleted_at"] != before["deleted_at"]:
            self._break("deletion-stays", f"{bundle.name}: its deletion was taken back")
        self._status_changed(bundle, before, after)

    def _status_changed(self, bundle: Bundle, before: Row, after: Row) -> None:
        if after["status"] == before["status"]:
            return
        old, new = _status(before), _status(after)
        if old and not order.is_newer(str(new["sequenceid"]), str(old["sequenceid"])):
            self._break("statuses-grow", f"{bundle.name}: an older report replaced a newer one")
        if old and int(new["resourceversion"]) < int(old["resourceversion"]):
            self._break("statuses-grow", f"{bundle.name}: a status of an older version replaced one of a newer")

    def _row_removed(self, bundle: Bundle, life: Life, before: Row) -> None:
        life.is_over = True
        if before["deleted_at"] is None:
            self._break("gone-only-after-deletion", f"{bundle.name}: nobody asked for its end")
        left = [name for name in self.clusters[bundle.consumer].config_maps() if _is_part(name, bundle)]
        if left:
            self._break("gone-only-after-deletion", f"{bundle.name}: its row went while {left} are on the cluster")

    def _happened(self, consumer: str, happened: Event) -> None:
        stored = happened.last
        if stored.resource != CONFIG_MAPS or stored.namespace != "default":
            return
        if self.told:
            what = "created" if happened.before is None else "removed" if happened.after is None else "changed"
            self.told(f"cluster {consumer}: {stored.name} {what} token={stored.obj.get('data', {}).get('token')}")
        bundle = next((b for b in self.bundles.values() if b.consumer == consumer and _is_part(stored.name, b)), None)
        if bundle is None:
            return
        row = self.engine.tables["resources"].get(bundle.id)
        life = self.current(bundle)
        if life is not None and row is not None and row["deleted_at"] is not None:
            self._note_leaving(life, happened)
        if happened.after is None:
            return
        if happened.before is None and life is None:
            self._break("deleted-stays-away", f"{bundle.name}: {stored.name} came back after the end")
        elif happened.before is None and life is not None and stored.name in life.removed:
            self._break("deleted-stays-away", f"{bundle.name}: {stored.name} came back while it is being deleted")
        self._check_order(bundle, happened)

    def _note_leaving(self, life: Life, happened: Event) -> None:
        """Note what goes because of the deletion; what somebody had asked to go before may be wanted again."""
        name, was_leaving = happened.last.name, happened.before is not None and _is_leaving(happened.before)
        if happened.after is not None and _is_leaving(happened.after) and not was_leaving:
            life.leaving.add(name)
        if happened.after is None and (name in life.leaving or not was_leaving):
            life.removed.add(name)

    def _check_order(self, bundle: Bundle, happened: Event) -> None:
        before, after = self._place(bundle, happened.before), self._place(bundle, happened.after)
        if before and after and after < before:
            self._break("applied-grows", f"{bundle.name}: {happened.last.name} went from {before} back to {after}")

    def _place(self, bundle: Bundle, stored: Stored | None) -> tuple[int, int] | None:
        """Return the life and the version that an object's content belongs to.

        The latest that has it: an update that is repeated after a deletion and a creation counts for the successor,
        since both begin with version 1.
        """
        token = (stored.obj.get("data") or {}).get("token") if stored is not None else None
        for number, life in reversed(list(enumerate(self.lives.get(bundle.id, [])))):
            for version, known in life.tokens.items():
                if known == token:
                    return number, version
        return None


def _is_leaving(stored: Stored) -> bool:
    return bool(stored.obj["metadata"].get("deletionTimestamp"))


def _is_part(name: str, bundle: Bundle) -> bool:
    return name.rpartition("-")[0] == bundle.name


def _token(row: Row) -> str:
    manifests = msgspec.json.decode(row["data"]).get("manifests") or [{}]
    return str(manifests[0].get("data", {}).get("token", ""))


def _status(row: Row) -> dict[str, Any]:
    return msgspec.json.decode(row["status"]) if row["status"] else {}


def _shown(row: Row | None) -> str:
    if row is None:
        return "-"
    said = _status(row)
    observed = f" status of {said['resourceversion']}" if said else ""
    return f"v{row['version']}{' deleting' if row['deleted_at'] else ''}{observed}"
