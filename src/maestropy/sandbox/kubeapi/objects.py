"""Create, replace, patch and delete objects, for clients and controllers.

Every operation reads the store, calls the pure rules (`admission`, `patches`, `server_side_apply`) and writes the
store without an `await`, so it is atomic. HTTP and authorization are handled by the callers.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from maestropy.sandbox.kubeapi import errors
from maestropy.sandbox.kubeapi.apply import apply_patch, empty_objects, patch_requests, server_side_apply
from maestropy.sandbox.kubeapi.errors import Cause, StatusError
from maestropy.sandbox.kubeapi.rules import admission
from maestropy.sandbox.kubeapi.rules.validation import invalid_value
from maestropy.sandbox.kubeapi.schemas.kinds import Registry, ServedKind
from maestropy.sandbox.kubeapi.storage import deletion as deleting
from maestropy.sandbox.kubeapi.storage.deletion import DeletionRequest
from maestropy.sandbox.kubeapi.storage.store import ObjectStore, StoredObject

Json = dict[str, Any]
NAMESPACES = ("", "namespaces")
# Kinds whose PUT must have a resourceVersion (no unconditional update), and kinds whose PUT may create.
_NO_UNCONDITIONAL_UPDATE = {
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
class ObjectWriteOptions:
    """Options of one write: field manager, dry run, field validation, force, subresource."""

    manager: str
    dry_run: bool = False
    field_validation: str = "Warn"
    force: bool | None = None
    subresource: str = ""
    admit: Callable[[ServedKind, Json], None] = lambda _kind, _obj: None
    """Called with the object as it would be stored; raises `StatusError` to reject it."""
    warnings: list[str] = field(default_factory=list)


class Objects:
    """The write path of the API: admission, defaulting, validation, managedFields, storage."""

    def __init__(
        self, *, store: ObjectStore, registry: Registry, now: Callable[[], datetime], new_id: Callable[[], str]
    ) -> None:
        self.store = store
        self.registry = registry
        self._now = now
        self._new_id = new_id

    def timestamp(self) -> str:
        """Return the current time as objects store it."""
        return self._now().strftime("%Y-%m-%dT%H:%M:%SZ")

    def new_id(self) -> str:
        """Return a new UID."""
        return self._new_id()

    def get(self, kind: ServedKind, namespace: str, name: str) -> StoredObject:
        """Return an object, or raise 404."""
        stored = self.store.get(kind.resource, namespace if kind.namespaced else "", name)
        if stored is None:
            raise errors.not_found(kind, name)
        return stored

    def create(self, kind: ServedKind, namespace: str, sent: Any, options: ObjectWriteOptions) -> StoredObject:
        """Create an object."""
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        obj = admission.address(kind, obj, namespace=namespace)
        self._check_namespace(kind, obj)
        write = self._write(kind, options, "Update")
        new_obj = admission.new_object(
            kind,
            obj,
            self._system_fields(),
            set_managed_fields=lambda new: server_side_apply.record_new(write.blank, new, write),
        )
        return self._insert(kind, new_obj, options)

    def _check_definition(self, kind: ServedKind, name: str) -> None:
        """Reject a new custom resource of a terminating definition: its deletion would never end."""
        definition = self.store.get(deleting.DEFINITIONS, "", f"{kind.plural}.{kind.group}") if kind.is_custom else None
        if definition is not None and definition.obj["metadata"].get("deletionTimestamp"):
            why = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(kind, name, why)

    def _insert(self, kind: ServedKind, obj: Json, options: ObjectWriteOptions) -> StoredObject:
        metadata = obj["metadata"]
        options.admit(kind, obj)
        self._check_definition(kind, metadata["name"])
        if self.store.get(kind.resource, metadata.get("namespace", ""), metadata["name"]):
            raise errors.already_exists(kind, metadata["name"])
        obj = self._in_storage_version(kind, obj)
        return self._store(kind, obj, options, version="")

    def replace(
        self, kind: ServedKind, namespace: str, name: str, sent: Any, options: ObjectWriteOptions
    ) -> StoredObject:
        """Replace an object (PUT)."""
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        obj = admission.address(kind, obj, namespace=namespace, name=name)
        if kind.plural in _CREATED_BY_PUT and not self.store.get(kind.resource, namespace, name):
            return self.create(kind, namespace, obj, options)
        old = self.get(kind, namespace, name)
        uid = obj["metadata"].get("uid")
        if uid and uid != old.uid:
            raise errors.conflict(kind, name, _uid_mismatch(kind, old, uid))
        if not obj["metadata"].get("resourceVersion") and (kind.is_custom or kind.plural in _NO_UNCONDITIONAL_UPDATE):
            cause = invalid_value("metadata.resourceVersion", "0x0", "must be specified for an update")
            raise errors.invalid(kind, name, [cause])
        return self._change(kind, old, obj, options)

    def patch(
        self, kind: ServedKind, namespace: str, name: str, *, patch: tuple[str, Any], options: ObjectWriteOptions
    ) -> StoredObject:
        """Patch an object; `patch` is the media type and the content."""
        media, content = patch
        patch_requests.check_options(media, manager=options.manager, force=options.force)
        if media == patch_requests.APPLY:
            return self._apply(kind, namespace, name, content, options)
        old = self.get(kind, namespace, name)
        live = self._in_requested_version(kind, old)
        sent = patch_requests.patched(kind, live, media, content)
        obj = admission.read(kind, sent, validation_mode=options.field_validation, warnings=options.warnings)
        if obj["metadata"].get("name") != name:
            cause = invalid_value("metadata.name", obj["metadata"].get("name"), "field is immutable")
            raise errors.invalid(kind, name, [cause])
        return self._change(kind, old, obj, options)

    def _apply(
        self, kind: ServedKind, namespace: str, name: str, sent: Any, options: ObjectWriteOptions
    ) -> StoredObject:
        config = apply_patch.configuration(kind, sent, subresource=options.subresource)
        apply_patch.check(kind, config)
        config = admission.address(kind, config, namespace=namespace, name=name)
        old = self.store.get(kind.resource, namespace if kind.namespaced else "", name)
        write = self._write(kind, options, "Apply")
        if old is None:
            return self._apply_new(kind, config, write, options)
        live = self._in_requested_version(kind, old)
        applied = apply_patch.apply(kind, live, config, write)
        return self._change(kind, old, apply_patch.read(kind, applied), options, applied=True)

    def _apply_new(
        self, kind: ServedKind, config: Json, write: server_side_apply.WriteContext, options: ObjectWriteOptions
    ) -> StoredObject:
        name = config["metadata"]["name"]
        if options.subresource:
            raise errors.not_found(kind, name)
        if config["metadata"].get("uid"):
            text = (
                f"uid mismatch: the provided object specified uid {config['metadata']['uid']}, "
                "and no existing object was found"
            )
            raise errors.conflict(kind, name, text)
        self._check_namespace(kind, config)
        applied = apply_patch.apply(kind, {"metadata": {}}, config, write)
        obj = apply_patch.read(kind, applied)
        entries = applied["metadata"].get("managedFields", [])
        new_obj = admission.new_object(
            kind,
            obj,
            self._system_fields(),
            set_managed_fields=lambda new: {**new, "metadata": {**new["metadata"], "managedFields": entries}},
        )
        return self._insert(kind, new_obj, options)

    def _change(
        self, kind: ServedKind, old: StoredObject, obj: Json, options: ObjectWriteOptions, *, applied: bool = False
    ) -> StoredObject:
        live = self._in_requested_version(kind, old)
        version = obj["metadata"].get("resourceVersion")
        if version and version != live["metadata"]["resourceVersion"]:
            raise errors.modified(kind, old.name)
        new_obj = admission.changed_object(kind, live, obj, subresource=options.subresource)
        if not applied:
            # A client resets managedFields by sending one empty entry.
            is_reset = obj["metadata"].get("managedFields") == [{}]
            before = {**live, "metadata": {**live["metadata"], "managedFields": []}} if is_reset else live
            new_obj = server_side_apply.record_update(before, new_obj, self._write(kind, options, "Update"))
        if new_obj["metadata"].get("managedFields") is None:
            new_obj["metadata"].pop("managedFields", None)
        options.admit(kind, new_obj)
        new_obj = self._in_storage_version(kind, new_obj)
        if new_obj == old.obj:
            return old
        return self._store(kind, new_obj, options, version=old.obj["metadata"]["resourceVersion"])

    def _store(self, kind: ServedKind, obj: Json, options: ObjectWriteOptions, *, version: str) -> StoredObject:
        if options.dry_run:
            # A dry run consumes no resourceVersion.
            return _dry_run_result(kind, obj, version)
        if len(orjson.dumps(obj)) > _MAX_OBJECT_BYTES:
            limit = _MAX_OBJECT_BYTES
            raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}", details={})
        stored = self.store.put(kind.resource, obj)
        return self._delete_if_no_finalizers(stored)

    def _delete_if_no_finalizers(self, stored: StoredObject) -> StoredObject:
        """Delete an object that is being deleted and has no finalizers left."""
        metadata = stored.obj["metadata"]
        finalizers = metadata.get("finalizers")
        if stored.resource == NAMESPACES:
            finalizers = finalizers or (stored.obj.get("spec") or {}).get("finalizers")
        if metadata.get("deletionTimestamp") and not finalizers:
            return self.store.delete(stored)
        return stored

    def delete(
        self, kind: ServedKind, namespace: str, name: str, deletion: DeletionRequest
    ) -> tuple[StoredObject, bool]:
        """Delete an object; return its last state and whether it is already deleted."""
        old = self.get(kind, namespace, name)
        deleting.check(kind, old, deletion)
        metadata = dict(old.obj["metadata"])
        finalizers = deleting.finalizers(kind, old, deletion)
        has_finalizers = bool(finalizers)
        new_obj = old.obj
        if kind.resource == NAMESPACES:
            has_finalizers = has_finalizers or bool((old.obj.get("spec") or {}).get("finalizers"))
            new_obj = {**new_obj, "status": {**(new_obj.get("status") or {}), "phase": "Terminating"}}
        if not has_finalizers:
            return (old if deletion.dry_run else self.store.delete(old)), True
        if not metadata.get("deletionTimestamp"):
            metadata |= {"deletionTimestamp": self.timestamp(), "deletionGracePeriodSeconds": 0}
            if metadata.get("generation"):
                metadata["generation"] += 1
        metadata["finalizers"] = finalizers
        if not finalizers:
            del metadata["finalizers"]
        new_obj = {**new_obj, "metadata": metadata}
        if new_obj == old.obj or deletion.dry_run:
            return old, False
        return self.store.put(kind.resource, new_obj), False

    def guaranteed_update(self, stored: StoredObject, change: Callable[[Json], Json]) -> StoredObject | None:
        """Apply `change` to the newest state of an object, for controllers; do nothing if it was deleted."""
        current = self.store.get(stored.resource, stored.namespace, stored.name)
        if current is None or current.uid != stored.uid:
            return None
        new_obj = change(current.obj)
        if new_obj == current.obj:
            return current
        kind = self.registry.of_resource(*stored.resource)
        if kind is not None and new_obj.get("status") == current.obj.get("status"):
            write = self._write(kind, ObjectWriteOptions(manager="kube-controller-manager"), "Update")
            new_obj = server_side_apply.record_update(current.obj, new_obj, write)
        return self._delete_if_no_finalizers(self.store.put(stored.resource, new_obj))

    def write_status(self, stored: StoredObject, status: Json, *, manager: str) -> None:
        """Replace the status of an object as field manager `manager`."""
        kind = self.registry.of_resource(*stored.resource)
        if kind is None:
            return
        write = self._write(kind, ObjectWriteOptions(manager=manager, subresource="status"), "Update")
        self.guaranteed_update(
            stored,
            lambda obj: (
                obj
                if obj.get("status") == status
                else server_side_apply.record_update(obj, {**obj, "status": status}, write)
            ),
        )

    def _check_namespace(self, kind: ServedKind, obj: Json) -> None:
        if not kind.namespaced:
            return
        name = obj["metadata"]["namespace"]
        namespace = self.store.get(NAMESPACES, "", name)
        if namespace is None:
            missing = self.registry.find("", "v1", "namespaces")
            assert missing is not None
            raise errors.not_found(missing, name)
        if namespace.obj["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            cause = Cause(
                reason="NamespaceTerminating",
                message=f"namespace {name} is being terminated",
                field="metadata.namespace",
            )
            raise errors.forbidden(kind, obj["metadata"].get("name", ""), why, causes=[cause])

    def _system_fields(self) -> admission.SystemFields:
        uid = self._new_id()
        digest = hashlib.sha256(uid.encode()).digest()
        suffix = "".join(_SUFFIX_SIGNS[byte % len(_SUFFIX_SIGNS)] for byte in digest[:5])
        address = f"10.96.{digest[5]}.{digest[6]}"
        return admission.SystemFields(uid=uid, now=self.timestamp(), suffix=suffix, address=address)

    def _write(self, kind: ServedKind, options: ObjectWriteOptions, operation: str) -> server_side_apply.WriteContext:
        manager = server_side_apply.FieldManager(
            name=options.manager,
            operation=operation,
            api_version=kind.api_version,
            subresource=options.subresource,
        )
        return server_side_apply.WriteContext(
            manager=manager,
            schema=kind.schema,
            now=self.timestamp(),
            blank=empty_objects.blank(kind),
            force=bool(options.force),
        )

    def _in_requested_version(self, kind: ServedKind, stored: StoredObject) -> Json:
        return (
            stored.obj
            if stored.obj["apiVersion"] == kind.api_version
            else {**stored.obj, "apiVersion": kind.api_version}
        )

    def _in_storage_version(self, kind: ServedKind, obj: Json) -> Json:
        if not kind.is_custom or kind.version == kind.storage_version:
            return obj
        return {**obj, "apiVersion": f"{kind.group}/{kind.storage_version}"}


def _uid_mismatch(kind: ServedKind, old: StoredObject, uid: str) -> str:
    storage_key = "/".join(
        filter(None, ("/registry", kind.group if kind.is_custom else "", kind.plural, old.namespace, old.name))
    )
    why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old.uid}"
    return f"StorageError: invalid object, Code: 4, Key: {storage_key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def _dry_run_result(kind: ServedKind, new_obj: Json, version: str) -> StoredObject:
    metadata = {name: value for name, value in new_obj["metadata"].items() if name != "resourceVersion"}
    obj = {**new_obj, "metadata": metadata | ({"resourceVersion": version} if version else {})}
    return StoredObject(resource=kind.resource, obj=obj, raw=b"", version=0)
