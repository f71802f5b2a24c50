"""A work as a program builds and reads it.

    work = (
        Work("hostedcluster-abc123", labels={"hyperfleet.io/cluster-id": "abc123"})
        .add(hosted_cluster, feedback={"status": ".status"}, update_strategy="ServerSideApply")
        .delete_option("Foreground")
    )

A `Work` is a value: every method that changes something returns a new one. It does no I/O but for reading the files
it is told to add.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from maestropy.sdk import building, manifests, reading
from maestropy.sdk.building import Feedback, Propagation, Strategy
from maestropy.sdk.errors import Invalid
from maestropy.sdk.manifests import Source
from maestropy.sdk.reading import Manifest
from maestropy.wire import codec, jsontypes, names, status, validate
from maestropy.wire import errors as wire_errors
from maestropy.wire import work as wire
from maestropy.wire.status import Condition
from maestropy.wire.work import ManifestWork

_NOTHING = object()


class Work:
    """Manifests for one cluster, and what became of them."""

    __slots__ = ("manifest_work", "observed_version")

    def __init__(
        self,
        name: str,
        *,
        consumer: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        built = wire.new(name, namespace=consumer)
        built = built.with_labels(labels) if labels else built
        self.manifest_work: ManifestWork = built.with_annotations(annotations) if annotations else built
        """The work in the terms of the protocol."""
        self.observed_version: int = 0
        """Which version of the work its status speaks of; 0 before the first report."""

    @classmethod
    def wrap(cls, found: ManifestWork, *, observed_version: int = 0) -> "Work":
        """Return a ManifestWork as a Work."""
        new = cls.__new__(cls)
        new.manifest_work = found
        new.observed_version = observed_version
        return new

    @classmethod
    def from_bundle(cls, bundle: Mapping[str, Any]) -> "Work":
        """Read a resource bundle of the REST API."""
        observed = (bundle.get("status") or {}).get("ObservedVersion") or 0
        return cls.wrap(codec.work_from_bundle(bundle), observed_version=int(observed))

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> "Work":
        """Read a ManifestWork that is already parsed."""
        try:
            return cls.wrap(wire.from_object(body))
        except wire_errors.WireError as error:
            raise Invalid(str(error), doing="read the work") from error

    @classmethod
    def from_yaml(cls, source: str | Path) -> "Work":
        """Read a ManifestWork from YAML or JSON, a text or a file.

        >>> Work.from_yaml(Path("work.yaml"))
        """
        documents = manifests.read(source)
        if len(documents) != 1:
            raise Invalid(f"there are {len(documents)} documents, not one ManifestWork", doing="read the work")
        return cls.from_dict(documents[0])

    def to_dict(self) -> dict[str, Any]:
        """Return the work as a ManifestWork in JSON's terms."""
        return dict(self.manifest_work.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Work) and other.manifest_work == self.manifest_work

    def __hash__(self) -> int:
        return hash((self.consumer, self.name))

    def __repr__(self) -> str:
        where = f"{self.consumer}/" if self.consumer else ""
        told = ", ".join(f"{each.type}={each.status}" for each in self.conditions)
        return f"<Work {where}{self.name} version {self.version}{f': {told}' if told else ''}>"

    # Who it is.

    @property
    def name(self) -> str:
        """Its name."""
        return self.manifest_work.name

    @property
    def consumer(self) -> str:
        """The cluster it is for; empty until it is sent."""
        return self.manifest_work.namespace

    @property
    def id(self) -> str:
        """Its id, the same in events, logs, database and agent; empty until it is sent."""
        return self.manifest_work.uid

    @property
    def version(self) -> int:
        """The version of what is wanted; 0 until it is sent."""
        return self.manifest_work.generation

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.manifest_work.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.manifest_work.annotations

    @property
    def is_deleting(self) -> bool:
        """Whether its deletion was asked for."""
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

        `feedback` says what to read back from each; without it nothing comes back but conditions. `resource` is the
        plural of the kind, where it cannot be guessed.

        >>> Work("hello").add(Path("deployment.yaml"), feedback={"replicas": ".status.readyReplicas"})
        """
        added = manifests.read(manifest)
        changed = self._with(self.manifest_work.with_manifests([*self.manifest_work.manifests, *added]))
        settings = building.settings(feedback=feedback, update_strategy=update_strategy)
        if settings:
            for each in added:
                who = manifests.identifier(each, resource=resource)
                changed = changed._with(building.configured(changed.manifest_work, who, settings))
        return changed

    def observe(self, api_version: str, kind: str, name: str, *, namespace: str = "", resource: str = "") -> "Work":
        """Return the work with an object that is only read, never written; its whole state is the value `resource`.

        >>> Work("eyes").observe("v1", "ConfigMap", "kube-root-ca.crt", namespace="default")
        """
        metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
        return self.add(manifest, feedback={"resource": "@"}, update_strategy="ReadOnly", resource=resource)

    def feedback_rule(self, name: str, path: str, *, kind: str = "", manifest: str = "", resource: str = "") -> "Work":
        """Return the work with one more value to read back, from all manifests or from those of a kind or name.

        >>> work.feedback_rule("replicas", ".status.readyReplicas", kind="Deployment")
        """
        rule = building.settings(feedback={name: path})
        return self._configured_each(rule, kind=kind, manifest=manifest, resource=resource)

    def update_strategy(
        self, strategy: Strategy, *, kind: str = "", manifest: str = "", resource: str = "", **apply: Any
    ) -> "Work":
        """Return the work with another way of updating, for all manifests or for those of a kind or name.

        Further arguments are those of server-side apply: `force=True`, `fieldManager="me"`, `ignoreFields=[…]`.
        """
        rule = building.settings(update_strategy=strategy, apply=apply)
        return self._configured_each(rule, kind=kind, manifest=manifest, resource=resource)

    def delete_option(
        self, policy: Propagation, *, orphan: Sequence[Source] = (), ttl_seconds: int | None = None
    ) -> "Work":
        """Return the work with another rule for what happens to its objects when it goes.

        `SelectivelyOrphan` leaves the objects in `orphan` behind; `ttl_seconds` deletes a work that is complete.
        """
        option = building.delete_option(policy, orphan=manifests.read(orphan), ttl_seconds=ttl_seconds)
        return self._with(self.manifest_work.with_spec(deleteOption=option))

    def executor(self, *, namespace: str, name: str) -> "Work":
        """Return the work applied as this service account; the REST API does not show it when the work is read."""
        account = {"type": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}
        return self._with(self.manifest_work.with_spec(executor={"subject": account}))

    def with_labels(self, labels: Mapping[str, str | None]) -> "Work":
        """Return the work with some labels set or, by None, removed."""
        return self._with(self.manifest_work.with_labels(labels))

    def with_annotations(self, annotations: Mapping[str, str | None]) -> "Work":
        """Return the work with some annotations set or, by None, removed."""
        return self._with(self.manifest_work.with_annotations(annotations))

    def with_manifests(self, replaced: Source | Iterable[Source]) -> "Work":
        """Return the work with other manifests; what was said about their treatment stays."""
        return self._with(self.manifest_work.with_manifests(manifests.read(replaced)))

    def validate(self) -> "Work":
        """Return the work itself if a server and an agent would take it; raise Invalid with all that is wrong."""
        found = names.invalid("metadata.name", self.name, names.dns1123_label(self.name))
        if self.consumer:
            found += names.invalid("metadata.namespace", self.consumer, names.dns1123_label(self.consumer))
        try:
            codec.check_manifests([jsontypes.encode(each) for each in self.manifest_work.manifests])
            validate.validate_bundle(jsontypes.encode(codec.bundle_from_spec(self.manifest_work.spec)))
        except wire_errors.WireError as error:
            found.append(str(error))
        except (TypeError, RecursionError) as error:
            found.append(f"a manifest holds what JSON cannot: {error}")
        if found:
            raise Invalid(names.join(found), doing=f"use work {self.name!r}")
        return self

    # Reading.

    @property
    def is_reported(self) -> bool:
        """Whether the agent has said anything about it yet."""
        return bool(self.manifest_work.status.body)

    @property
    def is_stale(self) -> bool:
        """Whether its status speaks of an older version than the one that is wanted now."""
        return self.is_reported and 0 < self.observed_version < self.version

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What the agent says about the whole work."""
        return self.manifest_work.status.conditions

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """Its manifests, with what is known of each."""
        return reading.manifests_of(self.manifest_work)

    def condition(self, condition_type: str) -> Condition | None:
        """Return what the agent says under this type.

        >>> work.condition("Available").reason
        """
        return next((each for each in self.conditions if each.type == condition_type), None)

    def is_true(self, condition_type: str) -> bool:
        """Say whether this condition is true for the version that is wanted now."""
        found = self.condition(condition_type)
        return found is not None and found.status == status.TRUE and not self.is_stale

    def manifest(self, kind: str = "", name: str = "", *, namespace: str = "") -> Manifest:
        """Return the one manifest of this kind and name; raise Invalid if none or several fit."""
        found = [each for each in self.manifests if _fits(each, kind, name) and namespace in ("", each.namespace)]
        if len(found) != 1:
            known = ", ".join(f"{each.kind}/{each.name}" for each in self.manifests)
            wanted = f"{kind or 'any kind'}/{name or 'any name'}"
            raise Invalid(
                f"{len(found)} manifests of work {self.name!r} fit {wanted}", advice=f"choose one of {known or 'none'}"
            )
        return found[0]

    def feedback(self, name: str, *, kind: str = "", manifest: str = "", default: Any = None) -> Any:
        """Return the value that a feedback rule of this name brought back, from the first manifest that has it.

        Values of nested works are not looked into; see `leaves`.

        >>> work.feedback("status")["conditions"]
        """
        for each in self.manifests:
            if _fits(each, kind, manifest):
                value = each.feedback.get(name, _NOTHING)
                if value is not _NOTHING:
                    return value
        return default

    def walk(self) -> Iterable["Work"]:
        """Yield this work and every work nested in it, outermost first."""
        return map(Work.wrap, reading.walk(self.manifest_work))

    def leaves(self) -> tuple[Manifest, ...]:
        """Return the innermost manifests: through all nested works, those that are no works themselves."""
        return tuple(reading.leaves(self.manifest_work))

    def _with(self, changed: ManifestWork) -> "Work":
        return Work.wrap(changed, observed_version=self.observed_version)

    def _configured_each(self, settings: Mapping[str, Any], *, kind: str, manifest: str, resource: str) -> "Work":
        changed = self
        chosen = [each.wanted for each in self.manifests if each.wanted and _fits(each, kind, manifest)]
        if not chosen:
            raise Invalid(
                f"no manifest of work {self.name!r} is a {kind or 'manifest'} {manifest}", advice="add it first"
            )
        for each in chosen:
            who = manifests.identifier(each, resource=resource)
            changed = changed._with(building.configured(changed.manifest_work, who, settings))
        return changed


def _fits(found: Manifest, kind: str, name: str) -> bool:
    return kind in ("", found.kind) and name in ("", found.name)
