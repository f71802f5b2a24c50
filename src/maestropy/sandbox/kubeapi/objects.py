"""The verbs: create, replace, patch and delete objects, for clients and controllers alike.

Reads the store, asks the pure rules (`admission`, `patches`, `ssa`), writes the store, all without a pause, so that
nothing can happen in between. Knows nothing of HTTP or of who may do what.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import admission, applying, blank, deleting, patching, problems, ssa
from maestropy.sandbox.kubeapi.deleting import Deletion
from maestropy.sandbox.kubeapi.kinds import Kind, Registry
from maestropy.sandbox.kubeapi.problems import Cause, Problem
from maestropy.sandbox.kubeapi.store import Store, Stored
from maestropy.sandbox.kubeapi.validation import wrong

Json = dict[str, Any]
NAMESPACES = ("", "namespaces")
# Kinds whose PUT must name the version it is based on, and kinds whose PUT may create.
_NEVER_BLIND = {
    "poddisruptionbudgets",
    "csidrivers",
    "leases",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "customresourcedefinitions",
}
_CREATED_BY_PUT = {
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "leases",
    "limitranges",
    "events",
    "services",
    "endpoints",
}
_SUFFIX_SIGNS = "bcdfghjklmnpqrstvwxz2456789"
_MAX_OBJECT_BYTES = 1_572_864


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How one write is to be done."""

    manager: str
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool | None = None
    subresource: str = ""
    admit: Callable[[Kind, Json], None] = lambda _kind, _obj: None
    """Called with the object as it would be kept; raises `Problem` to refuse it."""
    warnings: list[str] = field(default_factory=list)


class Objects:
    """The objects of the cluster, as the API lets them be changed."""

    def __init__(
        self, *, store: Store, registry: Registry, now: Callable[[], datetime], new_id: Callable[[], str]
    ) -> None:
        self.store = store
        self.registry = registry
        self._now = now
        self._new_id = new_id

    def timestamp(self) -> str:
        """Return the time as objects carry it."""
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_id(self) -> str:
        """Return a fresh id."""
        return self._new_id()

    def get(self, kind: Kind, namespace: str, name: str) -> Stored:
        """Return an object or refuse."""
        stored = self.store.get(kind.resource, namespace if kind.namespaced else "", name)
        if stored is None:
            raise problems.not_found(kind, name)
        return stored

    def create(self, kind: Kind, namespace: str, sent: Any, options: Options) -> Stored:
        """Keep a new object."""
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        obj = admission.address(kind, obj, namespace=namespace)
        self._check_namespace(kind, obj)
        write = self._write(kind, options, "Update")
        made = admission.new_object(kind, obj, self._stamp(), own=lambda new: ssa.record_new(write.blank, new, write))
        return self._insert(kind, made, options)

    def _insert(self, kind: Kind, made: Json, options: Options) -> Stored:
        metadata = made["metadata"]
        options.admit(kind, made)
        if self.store.get(kind.resource, metadata.get("namespace", ""), metadata["name"]):
            raise problems.already_exists(kind, metadata["name"])
        made = self._as_stored(kind, made)
        return self._keep(kind, made, options, version="")

    def replace(self, kind: Kind, namespace: str, name: str, sent: Any, options: Options) -> Stored:
        """Keep `sent` in place of the object that is there."""
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        obj = admission.address(kind, obj, namespace=namespace, name=name)
        if kind.plural in _CREATED_BY_PUT and not self.store.get(kind.resource, namespace, name):
            return self.create(kind, namespace, obj, options)
        old = self.get(kind, namespace, name)
        uid = obj["metadata"].get("uid")
        if uid and uid != old.uid:
            raise problems.conflict(kind, name, _other_object(kind, old, uid))
        if not obj["metadata"].get("resourceVersion") and (kind.custom or kind.plural in _NEVER_BLIND):
            cause = wrong("metadata.resourceVersion", "0x0", "must be specified for an update")
            raise problems.invalid(kind, name, [cause])
        return self._change(kind, old, obj, options)

    def patch(self, kind: Kind, namespace: str, name: str, *, patch: tuple[str, Any], options: Options) -> Stored:
        """Change an object by a patch, given as its media type and content."""
        media, content = patch
        patching.check_options(media, manager=options.manager, force=options.force)
        if media == patching.APPLY:
            return self._apply(kind, namespace, name, content, options)
        old = self.get(kind, namespace, name)
        live = self._as_requested(kind, old)
        sent = patching.patched(kind, live, media, content)
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        if obj["metadata"].get("name") != name:
            cause = wrong("metadata.name", obj["metadata"].get("name"), "field is immutable")
            raise problems.invalid(kind, name, [cause])
        return self._change(kind, old, obj, options)

    def _apply(self, kind: Kind, namespace: str, name: str, sent: Any, options: Options) -> Stored:
        wish = applying.wish(kind, sent, subresource=options.subresource)
        applying.check(kind, wish)
        wish = admission.address(kind, wish, namespace=namespace, name=name)
        old = self.store.get(kind.resource, namespace if kind.namespaced else "", name)
        write = self._write(kind, options, "Apply")
        if old is None:
            return self._apply_new(kind, wish, write, options)
        live = self._as_requested(kind, old)
        applied = applying.apply(kind, live, wish, write)
        return self._change(kind, old, applying.read(kind, applied), options, applied=True)

    def _apply_new(self, kind: Kind, wish: Json, write: ssa.Write, options: Options) -> Stored:
        name = wish["metadata"]["name"]
        if options.subresource:
            raise problems.not_found(kind, name)
        if wish["metadata"].get("uid"):
            text = (
                f"uid mismatch: the provided object specified uid {wish['metadata']['uid']}, "
                "and no existing object was found"
            )
            raise problems.conflict(kind, name, text)
        self._check_namespace(kind, wish)
        applied = applying.apply(kind, {"metadata": {}}, wish, write)
        obj = applying.read(kind, applied)
        entries = applied["metadata"].get("managedFields", [])
        made = admission.new_object(
            kind,
            obj,
            self._stamp(),
            own=lambda new: {**new, "metadata": {**new["metadata"], "managedFields": entries}},
        )
        return self._insert(kind, made, options)

    def _change(self, kind: Kind, old: Stored, obj: Json, options: Options, *, applied: bool = False) -> Stored:
        live = self._as_requested(kind, old)
        version = obj["metadata"].get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise problems.modified(kind, old.name)
        made = admission.changed_object(kind, live, obj, subresource=options.subresource)
        if not applied:
            # The agreed way to give up all ownership at once.
            forget = obj["metadata"].get("managedFields") == [{}]
            before = {**live, "metadata": {**live["metadata"], "managedFields": []}} if forget else live
            made = ssa.record_update(before, made, self._write(kind, options, "Update"))
        if made["metadata"].get("managedFields") is None:
            made["metadata"].pop("managedFields", None)
        options.admit(kind, made)
        made = self._as_stored(kind, made)
        if made == old.obj:
            return old
        return self._keep(kind, made, options, version=old.obj["metadata"]["resourceVersion"])

    def _keep(self, kind: Kind, made: Json, options: Options, *, version: str) -> Stored:
        if options.dry_run:
            # No new version is given out for what does not happen.
            return _unsaved(kind, made, version)
        if len(orjson.dumps(made)) > _MAX_OBJECT_BYTES:
            limit = _MAX_OBJECT_BYTES
            raise Problem(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}", details={})
        stored = self.store.put(kind.resource, made)
        return self._drop_if_free(stored)

    def _drop_if_free(self, stored: Stored) -> Stored:
        """Remove what waits for nobody any more."""
        metadata = stored.obj["metadata"]
        held = metadata.get("finalizers")
        if stored.resource == NAMESPACES:
            held = held or (stored.obj.get("spec") or {}).get("finalizers")
        if metadata.get("deletionTimestamp") and not held:
            return self.store.drop(stored)
        return stored

    def delete(self, kind: Kind, namespace: str, name: str, deletion: Deletion) -> tuple[Stored, bool]:
        """Delete an object; returns its last state and whether it is gone already."""
        old = self.get(kind, namespace, name)
        deleting.check(kind, old, deletion)
        metadata = dict(old.obj["metadata"])
        finalizers = deleting.finalizers(kind, old, deletion)
        held = bool(finalizers)
        made = old.obj
        if kind.resource == NAMESPACES:
            held = held or bool((old.obj.get("spec") or {}).get("finalizers"))
            made = {**made, "status": {**(made.get("status") or {}), "phase": "Terminating"}}
        if not held:
            return (old if deletion.dry_run else self.store.drop(old)), True
        if not metadata.get("deletionTimestamp"):
            metadata |= {"deletionTimestamp": self.timestamp(), "deletionGracePeriodSeconds": 0}
            if metadata.get("generation"):
                metadata["generation"] += 1
        metadata["finalizers"] = finalizers
        if not finalizers:
            del metadata["finalizers"]
        made = {**made, "metadata": metadata}
        if made == old.obj or deletion.dry_run:
            return old, False
        return self.store.put(kind.resource, made), False

    def amend(self, stored: Stored, change: Callable[[Json], Json]) -> Stored | None:
        """Change the newest state of an object by a function, for controllers; does nothing if it is gone."""
        current = self.store.get(stored.resource, stored.namespace, stored.name)
        if current is None or current.uid != stored.uid:
            return None
        made = change(current.obj)
        if made == current.obj:
            return current
        kind = self.registry.of_resource(*stored.resource)
        if kind is not None and made.get("status") == current.obj.get("status"):
            write = self._write(kind, Options(manager="kube-controller-manager"), "Update")
            made = ssa.record_update(current.obj, made, write)
        return self._drop_if_free(self.store.put(stored.resource, made))

    def write_status(self, stored: Stored, status: Json, *, manager: str) -> None:
        """Put a status in place of the one that is there, as a controller would."""
        kind = self.registry.of_resource(*stored.resource)
        if kind is None:
            return
        write = self._write(kind, Options(manager=manager, subresource="status"), "Update")
        self.amend(
            stored,
            lambda obj: (
                obj if obj.get("status") == status else ssa.record_update(obj, {**obj, "status": status}, write)
            ),
        )

    def _check_namespace(self, kind: Kind, obj: Json) -> None:
        if not kind.namespaced:
            return
        name = obj["metadata"]["namespace"]
        namespace = self.store.get(NAMESPACES, "", name)
        if namespace is None:
            missing = self.registry.find("", "v1", "namespaces")
            assert missing is not None
            raise problems.not_found(missing, name)
        if namespace.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = Cause(
                reason="NamespaceTerminating",
                message=f"namespace {name} is being terminated",
                field="metadata.namespace",
            )
            raise problems.forbidden(kind, obj["metadata"].get("name", ""), why, causes=[cause])

    def _stamp(self) -> admission.Stamp:
        uid = self._new_id()
        digest = hashlib.sha256(uid.encode()).digest()
        suffix = "".join(_SUFFIX_SIGNS[byte % len(_SUFFIX_SIGNS)] for byte in digest[:5])
        address = f"10.96.{digest[5]}.{digest[6]}"
        return admission.Stamp(uid=uid, now=self.timestamp(), suffix=suffix, address=address)

    def _write(self, kind: Kind, options: Options, operation: str) -> ssa.Write:
        manager = ssa.Manager(
            name=options.manager,
            operation=operation,
            api_version=kind.api_version,
            subresource=options.subresource,
        )
        return ssa.Write(
            manager=manager,
            schema=kind.schema,
            now=self.timestamp(),
            blank=blank.blank(kind),
            force=bool(options.force),
        )

    def _as_requested(self, kind: Kind, stored: Stored) -> Json:
        return (
            stored.obj
            if stored.obj["apiVersion"] == kind.api_version
            else {**stored.obj, "apiVersion": kind.api_version}
        )

    def _as_stored(self, kind: Kind, obj: Json) -> Json:
        if not kind.custom or kind.version == kind.storage_version:
            return obj
        return {**obj, "apiVersion": f"{kind.group}/{kind.storage_version}"}


def _other_object(kind: Kind, old: Stored, uid: str) -> str:
    place = "/".join(
        filter(None, ("/registry", kind.group if kind.custom else "", kind.plural, old.namespace, old.name))
    )
    why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
    return f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def _unsaved(kind: Kind, made: Json, version: str) -> Stored:
    metadata = {name: value for name, value in made["metadata"].items() if name != "resourceVersion"}
    obj = {**made, "metadata": metadata | ({"resourceVersion": version} if version else {})}
    return Stored(resource=kind.resource, obj=obj, raw=b"", version=0)
