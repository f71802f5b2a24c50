"""May this bundle be stored and sent to a cluster?

The rules and their wording are those of Maestro. They look at the head of each manifest only (apiVersion, kind,
metadata); whether a cluster accepts the rest is for the cluster to say. An empty bundle passes: a source may want
nothing for now, and the agent refuses it with its own words.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from maestropy.wire import bundleoptions, errors, names, storable
from maestropy.wire.storable import check_json as check_json

WHAT = "event data"
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


class _Bundle(bundleoptions.Options, gc=False):
    manifests: list[_Manifest] | None = None


_bundle = msgspec.json.Decoder(_Bundle | None)
_NO_METADATA = _Metadata()


def validate_bundle(data: bytes) -> None:
    """Refuse the data of a spec event unless every manifest in it may be stored."""
    if not data:
        return
    try:
        bundle = _bundle.decode(data)
    except msgspec.ValidationError:
        check_json(data, what=WHAT)
        manifests = _tolerant(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise storable.not_json(error, what=WHAT) from error
    else:
        storable.check_content(data, what=WHAT)
        manifests = (bundle.manifests if bundle else None) or []
    problems = [*_problems(manifests, size=len(data))]
    if problems:
        raise errors.Invalid(names.join(problems))


def _tolerant(data: bytes) -> list[_Manifest]:
    """Read a bundle with members of the wrong type; such a member counts as not set, as it does for Kubernetes."""
    body = msgspec.json.decode(data)
    if not isinstance(body, dict):
        raise errors.Malformed(f"failed to unmarshal {WHAT}: expected an object with a list named manifests")
    manifests = body.get("manifests")
    manifests = [] if manifests is None else manifests
    if not isinstance(manifests, list):
        raise errors.Malformed(f"failed to unmarshal {WHAT}: manifests must be a list")
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, dict):
            raise errors.Invalid(f"manifests[{index}]: Invalid value: a manifest must be an object")
    try:
        msgspec.convert(body, bundleoptions.Options)
    except msgspec.ValidationError as error:
        raise errors.Invalid(f"failed to decode manifest bundle: {error}") from error
    return [_tolerant_manifest(manifest) for manifest in manifests]


def _tolerant_manifest(found: dict[str, Any]) -> _Manifest:
    metadata = found.get("metadata")
    return _Manifest(
        api_version=_if_text(found.get("apiVersion")),
        kind=_if_text(found.get("kind")),
        metadata=_tolerant_metadata(metadata) if isinstance(metadata, dict) else None,
    )


def _tolerant_metadata(found: dict[str, Any]) -> _Metadata:
    finalizers = found.get("finalizers")
    return _Metadata(
        name=_if_text(found.get("name")),
        namespace=_if_text(found.get("namespace")),
        generate_name=_if_text(found.get("generateName")),
        resource_version=_if_text(found.get("resourceVersion")),
        deletion_grace_period_seconds=found.get("deletionGracePeriodSeconds"),
        labels=_if_texts(found.get("labels")),
        annotations=_if_texts(found.get("annotations")),
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
        if not _is_sound(manifest, metadata, size=size):
            yield from _identity_problems(manifest, metadata)
            yield from _metadata_problems(metadata)
        identity = (manifest.api_version, manifest.kind, metadata.namespace or "", metadata.name)
        if identity in seen and metadata.name:
            yield (
                f"duplicate manifest for resource {metadata.namespace or ''}/{metadata.name} "
                f"with resource type {manifest.api_version}.{manifest.kind}"
            )
        seen.add(identity)


def _is_sound(manifest: _Manifest, metadata: _Metadata, *, size: int) -> bool:
    """Recognise the manifests that need no closer look, which is nearly all of them."""
    if not (manifest.kind and metadata.name) or metadata.finalizers or size > ANNOTATIONS_MAX_BYTES:
        return False
    if metadata.generate_name or metadata.resource_version or metadata.deletion_grace_period_seconds is not None:
        return False
    try:
        _remember_head(manifest.api_version or "", metadata.namespace or "")
        for key, value in (metadata.labels or {}).items():
            _remember_label(key, value)
        for key in metadata.annotations or ():
            _remember_annotation_key(key)
    except _NotSoundError:
        return False
    return True


class _NotSoundError(Exception):
    """Raised, not returned: a cache forgets what raises, so it holds good names only, and those are short."""


@lru_cache(maxsize=4096)
def _remember_head(api_version: str, namespace: str) -> None:
    if [*_api_version_problems(api_version), *_namespace_problems(namespace)]:
        raise _NotSoundError


@lru_cache(maxsize=4096)
def _remember_label(key: str, value: str) -> None:
    if [*_label_problems(key, value)]:
        raise _NotSoundError


@lru_cache(maxsize=4096)
def _remember_annotation_key(key: str) -> None:
    if names.qualified_name(key.lower()):
        raise _NotSoundError


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
        problems = (names.dns1123_subdomain(group) if group else ["group not set"]) if slash else []
        problems += names.dns1035_label(version) if version else ["version not set"]
    yield from names.invalid("apiVersion", api_version, problems)


def _namespace_problems(namespace: str) -> Iterator[str]:
    if namespace:
        yield from names.invalid("metadata.namespace", namespace, names.dns1123_label(namespace))


def _annotation_problems(annotations: dict[str, str]) -> Iterator[str]:
    for key in annotations:
        yield from names.invalid("metadata.annotations", key, names.qualified_name(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_MAX_BYTES:
        yield f"metadata.annotations: Too long: may not be more than {ANNOTATIONS_MAX_BYTES} bytes"


def _finalizer_problems(finalizers: list[str]) -> Iterator[str]:
    for finalizer in finalizers:
        yield from names.invalid("metadata.finalizers", finalizer, names.qualified_name(finalizer))
    if _ORPHAN in finalizers and _FOREGROUND in finalizers:
        shown = msgspec.json.encode(finalizers).decode()
        problem = f"finalizer {_ORPHAN} and {_FOREGROUND} cannot be both set"
        yield f"metadata.finalizers: Invalid value: {shown}: {problem}"


def _label_problems(key: str, value: str) -> Iterator[str]:
    yield from names.invalid("metadata.labels", key, names.qualified_name(key))
    yield from names.invalid("metadata.labels", value, names.label_value(value))
