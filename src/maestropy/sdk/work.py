"""Build works and read their status.

    work = (
        Work("hostedcluster-abc123", labels={"hyperfleet.io/cluster-id": "abc123"})
        .add(hosted_cluster, feedback={"status": ".status"}, update_strategy="ServerSideApply")
        .delete_option("Foreground")
    )

A `Work` is a value: every method that changes something returns a new one. It does no I/O except reading the manifest
files that are added.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from maestropy.sdk._manifests import options as building
from maestropy.sdk._manifests import sources as manifests
from maestropy.sdk._manifests import status as reading
from maestropy.sdk._manifests import typed
from maestropy.sdk._manifests.options import Feedback, Propagation, Strategy
from maestropy.sdk._manifests.sources import Source
from maestropy.sdk._manifests.status import Manifest
from maestropy.sdk.errors import Invalid
from maestropy.wire import codec, json_types, json_values, kubernetes_names
from maestropy.wire import errors as wire_errors
from maestropy.wire.works import status, unknown_fields
from maestropy.wire.works import validation as validate
from maestropy.wire.works import work as wire
from maestropy.wire.works.status import Condition
from maestropy.wire.works.work import ManifestWork

_ABSENT = object()
_SPEC_FIELDS = ("workload", "manifestConfigs", "deleteOption", "executor")
Value = TypeVar("Value")


class Work:
    """A ManifestWork: manifests for one consumer, and their status."""

    __slots__ = ("manifest_work", "observed_version")

    def __init__(
        self,
        name: str,
        *,
        consumer: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        for field, value in (("name", name), ("consumer", consumer)):
            if not isinstance(value, str):
                raise Invalid(f"the {field} of a work is of type {type(value).__name__}", advice="give a string")
        built = wire.new(name, namespace=consumer)
        built = built.with_labels(labels) if labels else built
        self.manifest_work: ManifestWork = built.with_annotations(annotations) if annotations else built
        """The ManifestWork of the protocol."""
        self.observed_version: int = 0
        """The resource version that the status describes; 0 before the first status update."""

    @classmethod
    def wrap(cls, manifest_work: ManifestWork, *, observed_version: int = 0) -> "Work":
        """Return a ManifestWork as a Work."""
        new = cls.__new__(cls)
        new.manifest_work = manifest_work
        new.observed_version = observed_version
        return new

    @classmethod
    def from_resource_bundle(cls, bundle: Mapping[str, Any]) -> "Work":
        """Parse a resource bundle of the REST API."""
        observed = (bundle.get("status") or {}).get("ObservedVersion") or 0
        return cls.wrap(codec.work_from_resource_bundle(bundle), observed_version=int(observed))

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "Work":
        """Return a ManifestWork in the form of a dict as a Work."""
        try:
            read = cls.wrap(wire.from_object(body))
            _ = read.name, read.consumer, read.version, read.manifest_work.manifests
        except wire_errors.WireError as error:
            raise Invalid(str(error), doing="read the work") from error
        return read

    @classmethod
    def from_yaml(cls, source: str | Path) -> "Work":
        """Parse a ManifestWork from YAML or JSON, a string or a file.

        >>> Work.from_yaml(Path("work.yaml"))
        """
        documents = manifests.read(source)
        if len(documents) != 1:
            raise Invalid(f"there are {len(documents)} documents, not one ManifestWork", doing="read the work")
        return cls.from_dict(documents[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the ManifestWork as a dict."""
        return dict(self.manifest_work.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Work) and other.manifest_work == self.manifest_work

    def __hash__(self) -> int:
        return hash((self.consumer, self.name))

    def __repr__(self) -> str:
        prefix = f"{self.consumer}/" if self.consumer else ""
        conditions = ", ".join(f"{condition.type}={condition.status}" for condition in self.conditions)
        return f"<Work {prefix}{self.name} version {self.version}{f': {conditions}' if conditions else ''}>"

    # Identity.

    @property
    def name(self) -> str:
        """The name."""
        return self.manifest_work.name

    @property
    def consumer(self) -> str:
        """The consumer; empty until it is sent."""
        return self.manifest_work.namespace

    @property
    def id(self) -> str:
        """The resource ID, the same in events, logs, database and agent; empty until it is sent."""
        return self.manifest_work.uid

    @property
    def version(self) -> int:
        """The resource version of the spec; 0 until it is sent."""
        return self.manifest_work.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels."""
        return self.manifest_work.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations."""
        return self.manifest_work.annotations

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was requested."""
        return bool(self.manifest_work.deletion_timestamp)

    # Building.

    def add(
        self,
        manifest: Source | Iterable[Source],
        *,
        feedback: Feedback | None = None,
        update_strategy: Strategy | None = None,
        resource: str = "",
    ) -> "Work":
        """Return the work with more manifests.

        `feedback` are the feedback rules of each manifest; without them only conditions are reported. `resource` is the
        plural of the kind, if it is irregular.

        >>> Work("hello").add(Path("deployment.yaml"), feedback={"replicas": ".status.readyReplicas"})
        """
        added = manifests.read(manifest)
        changed = self._with(self.manifest_work.with_manifests([*self.manifest_work.manifests, *added]))
        settings = building.settings(feedback=feedback, update_strategy=update_strategy)
        if settings:
            for document in added:
                identifier = manifests.identifier(document, resource=resource)
                changed = changed._with(building.configured(changed.manifest_work, identifier, settings))
        return changed

    def observe(self, api_version: str, kind: str, name: str, *, namespace: str = "", resource: str = "") -> "Work":
        """Return the work with an object that is only read; the whole object is the feedback value `resource`.

        >>> Work("observer").observe("v1", "ConfigMap", "kube-root-ca.crt", namespace="default")
        """
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        return self.add(manifest, feedback={"resource": "@"}, update_strategy="ReadOnly", resource=resource)

    def feedback_rule(self, name: str, path: str, *, kind: str = "", manifest: str = "", resource: str = "") -> "Work":
        """Return the work with one more feedback rule, for all manifests or for those of a kind or name.

        >>> work.feedback_rule("replicas", ".status.readyReplicas", kind="Deployment")
        """
        rule = building.settings(feedback={name: path})
        return self._with_config(rule, kind=kind, manifest=manifest, resource=resource)

    def update_strategy(
        self, strategy: Strategy, *, kind: str = "", manifest: str = "", resource: str = "", **apply: Any
    ) -> "Work":
        """Return the work with another update strategy, for all manifests or for those of a kind or name.

        Further arguments are those of server-side apply: `force=True`, `fieldManager="me"`, `ignoreFields=[…]`.
        """
        rule = building.settings(update_strategy=strategy, apply=apply)
        return self._with_config(rule, kind=kind, manifest=manifest, resource=resource)

    def delete_option(
        self, policy: Propagation, *, orphan: Sequence[Source] = (), ttl_seconds: int | None = None
    ) -> "Work":
        """Return the work with another delete option.

        `SelectivelyOrphan` keeps the objects in `orphan`; `ttl_seconds` deletes a complete work.
        """
        option = building.delete_option(policy, orphan=manifests.read(orphan), ttl_seconds=ttl_seconds)
        return self._with(self.manifest_work.with_spec(deleteOption=option))

    def executor(self, *, namespace: str, name: str) -> "Work":
        """Return the work with this service account as executor; a Go server does not return it."""
        account = {"type": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
        return self._with(self.manifest_work.with_spec(executor={"subject": account}))

    def with_labels(self, labels: Mapping[str, str | None]) -> "Work":
        """Return the work with these labels set; None removes a label."""
        return self._with(self.manifest_work.with_labels(labels))

    def with_annotations(self, annotations: Mapping[str, str | None]) -> "Work":
        """Return the work with these annotations set; None removes an annotation."""
        return self._with(self.manifest_work.with_annotations(annotations))

    def with_manifests(self, replaced: Source | Iterable[Source]) -> "Work":
        """Return the work with other manifests; the manifest configs stay."""
        return self._with(self.manifest_work.with_manifests(manifests.read(replaced)))

    def validate(self) -> "Work":
        """Return the work if a server and an agent accept it; raises Invalid with all problems."""
        problems = kubernetes_names.invalid("metadata.name", self.name, kubernetes_names.dns1123_label(self.name))
        if self.consumer:
            problems += kubernetes_names.invalid(
                "metadata.namespace", self.consumer, kubernetes_names.dns1123_label(self.consumer)
            )
        unusable = json_values.problems({**self.manifest_work.body, "status": {}})
        for index, manifest in enumerate(self.manifest_work.manifests):
            unusable += json_values.identity_problems(manifest, path=f"manifests[{index}]")
        if unusable:
            raise Invalid(
                kubernetes_names.join(unusable), doing=f"use work {json_values.escape_surrogates(self.name)!r}"
            )
        # A server stores invalid labels; the agent then fails to apply the work, for ever.
        metadata = self.manifest_work.body.get("metadata") or {}
        problems += kubernetes_names.labels("metadata.labels", metadata.get("labels"))
        # A misspelt field hides what is in it, so it is named before, for instance, manifests that are missing.
        unknown = [name for name in self.manifest_work.spec if name not in (*_SPEC_FIELDS, "executer")]
        problems += [unknown_fields.problem(name, _SPEC_FIELDS) for name in unknown]
        try:
            if not unknown:
                codec.check_manifests([json_types.encode(manifest) for manifest in self.manifest_work.manifests])
                validate.validate_manifest_bundle(
                    json_types.encode(codec.manifest_bundle_from_spec(self.manifest_work.spec))
                )
        except wire_errors.WireError as error:
            problems.append(str(error))
        except (TypeError, RecursionError) as error:
            problems.append(f"a manifest cannot be encoded as JSON: {error}")
        if problems:
            raise Invalid(kubernetes_names.join(problems), doing=f"use work {self.name!r}")
        return self

    # Status.

    @property
    def is_reported(self) -> bool:
        """Whether the agent has reported a status."""
        return bool(self.manifest_work.status.body)

    @property
    def is_stale(self) -> bool:
        """Whether its status describes an older version than the current one."""
        return self.is_reported and 0 < self.observed_version < self.version

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of the whole work."""
        return self.manifest_work.status.conditions

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The manifests, each with its status."""
        return reading.manifests_of(self.manifest_work)

    def condition(self, condition_type: str) -> Condition | None:
        """Return the condition of this type.

        >>> work.condition("Available").reason
        """
        return next((condition for condition in self.conditions if condition.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        """Return whether this condition is True for the current version."""
        condition = self.condition(condition_type)
        return condition is not None and condition.status == status.TRUE and not self.is_stale

    def manifest(self, kind: str = "", name: str = "", *, namespace: str = "") -> Manifest:
        """Return the only manifest of this kind and name; raises Invalid if none or several match."""
        matches = [
            manifest
            for manifest in self.manifests
            if _matches(manifest, kind, name) and namespace in ("", manifest.namespace)
        ]
        if len(matches) != 1:
            known = ", ".join(f"{manifest.kind}/{manifest.name}" for manifest in self.manifests)
            description = f"{kind or 'any kind'}/{name or 'any name'}"
            raise Invalid(
                f"{len(matches)} manifests of work {self.name!r} match {description}",
                advice=f"choose one of {known or 'none'}",
            )
        return matches[0]

    @overload
    def feedback(self, name: str, *, kind: str = "", manifest: str = "", default: Any = None) -> Any: ...
    @overload
    def feedback(
        self, name: str, into: type[Value], *, kind: str = "", manifest: str = "", default: None = None
    ) -> Value | None: ...
    @overload
    def feedback(
        self, name: str, into: type[Value], *, kind: str = "", manifest: str = "", default: Value
    ) -> Value: ...
    def feedback(
        self, name: str, into: type[Any] | None = None, *, kind: str = "", manifest: str = "", default: Any = None
    ) -> Any:
        """Return the feedback value of this name, from the first manifest that has it, or `default`.

        `into` is a class for the value: a msgspec Struct, a dataclass, a TypedDict or a pydantic model. A value that
        does not match it raises Invalid. Nested works are not searched; see `leaves`.

        >>> work.feedback("status")["conditions"]
        >>> work.feedback("status", HostedClusterStatus)
        """
        for item in self.manifests:
            if _matches(item, kind, manifest):
                value = item.feedback.get(name, _ABSENT)
                if value is not _ABSENT:
                    return value if into is None else typed.convert(value, into, name=name)
        return default

    def walk(self) -> Iterable["Work"]:
        """Yield this work and every work nested in it, outermost first."""
        return map(Work.wrap, reading.walk(self.manifest_work))

    def leaves(self) -> tuple[Manifest, ...]:
        """Return the innermost manifests of all nested works: those that are not ManifestWorks themselves."""
        return tuple(reading.leaves(self.manifest_work))

    def _with(self, changed: ManifestWork) -> "Work":
        return Work.wrap(changed, observed_version=self.observed_version)

    def _with_config(self, settings: Mapping[str, Any], *, kind: str, manifest: str, resource: str) -> "Work":
        changed = self
        chosen = [item.desired for item in self.manifests if item.desired and _matches(item, kind, manifest)]
        if not chosen:
            raise Invalid(
                f"no manifest of work {self.name!r} is a {kind or 'manifest'} {manifest}", advice="add it first"
            )
        for document in chosen:
            identifier = manifests.identifier(document, resource=resource)
            changed = changed._with(building.configured(changed.manifest_work, identifier, settings))
        return changed


def _matches(manifest: Manifest, kind: str, name: str) -> bool:
    return kind in ("", manifest.kind) and name in ("", manifest.name)
