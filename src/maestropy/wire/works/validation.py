"""Validate the ManifestBundle of a spec request before it is stored.

The rules and the texts of errors are those of the Go Maestro; unknown and repeated fields of options are rejected as
well. Only apiVersion, kind and metadata of a manifest are checked; the API server of the cluster checks the rest. An
empty bundle is valid here: the agent rejects it.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from maestropy.wire import errors, kubernetes_names, storable_json
from maestropy.wire.works import duplicate_fields, option_types, unknown_fields

LABEL = "event data"
ANNOTATIONS_MAX_BYTES = 256 * 1024

_ORPHAN = "orphan"
_FOREGROUND = "foregroundDeletion"


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str | None = None
    namespace: str | None = None
    generate_name: str | None = None
    resource_version: str | None = None
    deletion_grace_period_seconds: Any = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Manifest(msgspec.Struct, rename="camel", gc=False):
    api_version: str | None = None
    kind: str | None = None
    metadata: _Metadata | None = None


class _Bundle(option_types.WorkOptions, gc=False):
    manifests: list[_Manifest] | None = None


class _BundleFields(option_types.WorkOptions, gc=False):
    manifests: object = None


_bundle = msgspec.json.Decoder(_Bundle | None)
_NO_METADATA = _Metadata()


def validate_manifest_bundle(data: bytes) -> None:
    """Raise `WireError` unless every manifest in the data of a spec event is valid."""
    if not data:
        return
    try:
        bundle = _bundle.decode(data)
    except msgspec.ValidationError:
        storable_json.check_json(data, label=LABEL)
        manifests = _decode_leniently(data)
        has_options = True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise storable_json.not_json(error, data, label=LABEL) from error
    else:
        storable_json.check_content(data, label=LABEL)
        manifests = (bundle.manifests if bundle else None) or []
        has_options = bundle is not None and _has_options(bundle)
    duplicate_fields.check(data, has_options=has_options)
    problems = [*_problems(manifests, size=len(data))]
    if problems:
        raise errors.InvalidContent(kubernetes_names.join(problems))


def _has_options(bundle: _Bundle) -> bool:
    return bool(bundle.manifest_configs or bundle.delete_option or bundle.executer)


def _decode_leniently(data: bytes) -> list[_Manifest]:
    """Decode a bundle that has unknown members, or members of a wrong type.

    A member of a manifest that has a wrong type counts as not set, as in Kubernetes; options are rejected.
    """
    body = msgspec.json.decode(data)
    if not isinstance(body, dict):
        raise errors.MalformedMessage(f"failed to unmarshal {LABEL}: expected an object with a list named manifests")
    manifests = body.get("manifests")
    manifests = [] if manifests is None else manifests
    if not isinstance(manifests, list):
        raise errors.MalformedMessage(f"failed to unmarshal {LABEL}: manifests must be a list")
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict):
            raise errors.InvalidContent(f"manifests[{index}]: Invalid value: a manifest must be an object")
    unknown = [*unknown_fields.problems(body, _BundleFields)]
    if unknown:
        raise errors.InvalidContent(kubernetes_names.join(unknown))
    try:
        msgspec.convert(body, _BundleFields)
    except msgspec.ValidationError as error:
        raise errors.InvalidContent(f"failed to decode manifest bundle: {error}") from error
    return [_lenient_manifest(manifest) for manifest in manifests]


def _lenient_manifest(manifest: dict[str, Any]) -> _Manifest:
    metadata = manifest.get("metadata")
    return _Manifest(
        api_version=_if_text(manifest.get("apiVersion")),
        kind=_if_text(manifest.get("kind")),
        metadata=_lenient_metadata(metadata) if isinstance(metadata, dict) else None,
    )


def _lenient_metadata(metadata: dict[str, Any]) -> _Metadata:
    finalizers = metadata.get("finalizers")
    return _Metadata(
        name=_if_text(metadata.get("name")),
        namespace=_if_text(metadata.get("namespace")),
        generate_name=_if_text(metadata.get("generateName")),
        resource_version=_if_text(metadata.get("resourceVersion")),
        deletion_grace_period_seconds=metadata.get("deletionGracePeriodSeconds"),
        labels=_if_texts(metadata.get("labels")),
        annotations=_if_texts(metadata.get("annotations")),
        finalizers=finalizers if _are_texts(finalizers) else None,
    )


def _if_text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _if_texts(value: object) -> dict[str, str] | None:
    return value if isinstance(value, dict) and _are_texts(list(value.values())) else None


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _problems(manifests: list[_Manifest], *, size: int) -> Iterator[str]:
    seen = set()
    for manifest in manifests:
        metadata = manifest.metadata or _NO_METADATA
        if not _is_plainly_valid(manifest, metadata, size=size):
            yield from _identity_problems(manifest, metadata)
            yield from _metadata_problems(metadata)
        identity = (manifest.api_version, manifest.kind, metadata.namespace or "", metadata.name)
        if identity in seen and metadata.name:
            yield (
                f"duplicate manifest for resource {metadata.namespace or ''}/{metadata.name} "
                f"with resource type {manifest.api_version}.{manifest.kind}"
            )
        seen.add(identity)


def _is_plainly_valid(manifest: _Manifest, metadata: _Metadata, *, size: int) -> bool:
    """Return whether a manifest is valid by a fast check; nearly all manifests are."""
    if not (manifest.kind and metadata.name) or metadata.finalizers or size > ANNOTATIONS_MAX_BYTES:
        return False
    if metadata.generate_name or metadata.resource_version or metadata.deletion_grace_period_seconds is not None:
        return False
    try:
        _check_head(manifest.api_version or "", metadata.namespace or "")
        for key, value in (metadata.labels or {}).items():
            _check_label(key, value)
        for key in metadata.annotations or ():
            _check_annotation_key(key)
    except _InvalidNameError:
        return False
    return True


class _InvalidNameError(Exception):
    """Raised, not returned: the cache does not keep calls that raise, so it holds only valid names, which are short."""


@lru_cache(maxsize=4096)
def _check_head(api_version: str, namespace: str) -> None:
    if [*_api_version_problems(api_version), *_namespace_problems(namespace)]:
        raise _InvalidNameError


@lru_cache(maxsize=4096)
def _check_label(key: str, value: str) -> None:
    if [*_label_problems(key, value)]:
        raise _InvalidNameError


@lru_cache(maxsize=4096)
def _check_annotation_key(key: str) -> None:
    if kubernetes_names.qualified_name(key.lower()):
        raise _InvalidNameError


def _identity_problems(manifest: _Manifest, metadata: _Metadata) -> Iterator[str]:
    yield from _api_version_problems(manifest.api_version or "")
    if not manifest.kind:
        yield "kind: Required value: field not set"
    if not metadata.name:
        yield "metadata.name: Required value: field not set"
    yield from _namespace_problems(metadata.namespace or "")


def _metadata_problems(metadata: _Metadata) -> Iterator[str]:
    if metadata.generate_name:
        yield "metadata.generateName: Forbidden: field cannot be set"
    if metadata.resource_version:
        yield "metadata.resourceVersion: Forbidden: field cannot be set"
    if metadata.deletion_grace_period_seconds is not None:
        yield "metadata.deletionGracePeriodSeconds: Forbidden: field cannot be set"
    yield from _annotation_problems(metadata.annotations or {})
    yield from _finalizer_problems(metadata.finalizers or [])
    for key, value in (metadata.labels or {}).items():
        yield from _label_problems(key, value)


def _api_version_problems(api_version: str) -> Iterator[str]:
    if not api_version:
        yield "apiVersion: Required value: field not set"
        return
    group, slash, version = api_version.rpartition("/")
    if "/" in group:
        problems = ["bad format"]
    else:
        problems = (kubernetes_names.dns1123_subdomain(group) if group else ["group not set"]) if slash else []
        problems += kubernetes_names.dns1035_label(version) if version else ["version not set"]
    yield from kubernetes_names.invalid("apiVersion", api_version, problems)


def _namespace_problems(namespace: str) -> Iterator[str]:
    if namespace:
        yield from kubernetes_names.invalid("metadata.namespace", namespace, kubernetes_names.dns1123_label(namespace))


def _annotation_problems(annotations: dict[str, str]) -> Iterator[str]:
    for key in annotations:
        yield from kubernetes_names.invalid("metadata.annotations", key, kubernetes_names.qualified_name(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX_BYTES:
        yield f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_MAX_BYTES} bytes"


def _finalizer_problems(finalizers: list[str]) -> Iterator[str]:
    for finalizer in finalizers:
        yield from kubernetes_names.invalid(
            "metadata.finalizers", finalizer, kubernetes_names.qualified_name(finalizer)
        )
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        shown = msgspec.json.encode(finalizers).decode()
        problem = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield f"metadata.finalizers: Invalid value: {shown}: {problem}"


def _label_problems(key: str, value: str) -> Iterator[str]:
    yield from kubernetes_names.invalid("metadata.labels", key, kubernetes_names.qualified_name(key))
    yield from kubernetes_names.invalid("metadata.labels", value, kubernetes_names.label_value(value))
