"""Check a HyperFleet deployment file: the credentials of the API, stores and transports. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from maestropy.adapter.tasks.language import go_template
from maestropy.adapter.tasks.language.go_functions import TemplateError
from maestropy.adapter.tasks.load.problems import LoadProblem, error
from maestropy.adapter.tasks.load.routing import LOCAL, REMOTE
from maestropy.adapter.tasks.load.structure import Entry, at, is_blank
from maestropy.wire import kubernetes_names

_DNS_1035 = re.compile(r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$")
_API_VERSION = re.compile(r"^[^/{}\s]+(/[^/{}\s]+)?$")
_KIND = re.compile(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$")


def problems(config: Entry) -> Iterator[LoadProblem]:
    """Yield the problems of a deployment file that concern tasks."""
    if is_blank(at(config, "adapter", "name")):
        yield error("adapter.name", "adapter.name is required", "name the adapter; statuses carry that name")
    yield from _auth(at(config, "clients", "hyperfleet_api", "auth"))
    stores, transports = _objects(config, "stores"), _objects(config, "transports")
    if transports and at(config, "clients", "maestro") is not None:
        message = "clients.maestro cannot be configured when transports are set"
        yield error("clients.maestro", message, "remove one of the two: Maestro is for tasks without a version")
    yield from _collisions("stores", stores)
    yield from _collisions("transports", transports)
    for name, store in stores.items():
        yield from _store(store, f"stores.{name}")
    for name, transport in transports.items():
        yield from _transport(transport, f"transports.{name}", name=name, stores=stores)
    used = {str(transport.get("store")).strip().lower() for transport in transports.values()}
    for name in stores:
        if name.strip().lower() not in used:
            yield error(f"stores.{name}", "is not referenced by any remote transport", "remove it, or use it")


def _objects(config: Entry, section: str) -> dict[str, Entry]:
    value = config.get(section)
    entries = value.items() if isinstance(value, Mapping) else ()
    return {str(name): entry for name, entry in entries if isinstance(entry, Mapping)}


def _auth(auth: Any) -> Iterator[LoadProblem]:
    if not isinstance(auth, Mapping):
        return
    where = "clients.hyperfleet_api.auth"
    path = auth.get("token_path")
    if is_blank(path):
        message = "token_path must be set when auth is configured"
        yield error(f"{where}.token_path", message, "name the file of the token, or remove auth")
    elif not str(path).startswith("/"):
        message = f'token_path must be an absolute path, got "{path}"'
        yield error(f"{where}.token_path", message, "begin it with /")
    lifetime = auth.get("token_cache_ttl")
    if isinstance(lifetime, str | int) and str(lifetime).startswith("-"):
        yield error(f"{where}.token_cache_ttl", "token_cache_ttl must not be negative", "0 reads the file each time")


def _collisions(section: str, entries: Mapping[str, Any]) -> Iterator[LoadProblem]:
    seen: dict[str, str] = {}
    for name in sorted(entries):
        key = name.strip().lower()
        if key in seen:
            message = f'{section}.{seen[key]} and {section}.{name} resolve to the same name "{key}"'
            yield error(section, message, "names ignore case; rename one")
        seen.setdefault(key, name)


def _store(store: Entry, path: str) -> Iterator[LoadProblem]:
    kind, url = store.get("type"), store.get("url")
    if kind == "memory":
        if not is_blank(url):
            yield error(f"{path}.url", "url is not valid for memory store", "remove it")
    elif kind != "redis":
        message = f'type "{kind}" is unsupported (supported: memory, redis)'
        yield error(f"{path}.type", message, "use redis")
    elif is_blank(url):
        yield error(f"{path}.url", "url is required for redis store", "write rediss://HOST:6379")
    else:
        yield from _redis(str(url), f"{path}.url")


def _redis(url: str, path: str) -> Iterator[LoadProblem]:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("redis", "rediss", "unix") and (parts.port is None or parts.port > 0)
    except ValueError:
        is_valid = False
    if not is_valid:
        yield error(path, "url is invalid for redis store", "write rediss://HOST:6379")
    elif parts.scheme == "redis" and (parts.username or parts.password):
        message = "url must use rediss:// when credentials are configured"
        yield error(path, message, "passwords must not cross the network in plain text")


def _transport(transport: Entry, path: str, *, name: str, stores: Mapping[str, Any]) -> Iterator[LoadProblem]:
    kind = transport.get("type")
    if kind == LOCAL:
        if any(transport.get(field) for field in ("store", "target_cluster", "resource_plurals")):
            message = "local Kubernetes transport cannot configure remote routing"
            yield error(path, message, "remove store, target_cluster and resource_plurals")
    elif kind != REMOTE:
        message = f'type "{kind}" is unsupported (supported: {LOCAL}, {REMOTE})'
        yield error(f"{path}.type", message, f"use {REMOTE} or {LOCAL}")
    else:
        if name.strip().lower() == LOCAL:
            yield error(path, "name kubernetes is reserved for local Kubernetes", "rename the transport")
        yield from _target(transport.get("target_cluster"), f"{path}.target_cluster")
        yield from _plurals(transport.get("resource_plurals"), path)
        yield from _store_of(transport.get("store"), f"{path}.store", stores=stores)


def _store_of(store: Any, path: str, *, stores: Mapping[str, Any]) -> Iterator[LoadProblem]:
    if is_blank(store):
        yield error(path, "store is required for remote transport", "name one of stores")
    elif str(store).strip().lower() not in {name.strip().lower() for name in stores}:
        yield error(path, f'store references unknown store "{store}"', "declare it under stores")


def _target(target: Any, path: str) -> Iterator[LoadProblem]:
    if is_blank(target):
        yield error(path, "target_cluster is required for remote transport", "a name, or {{ .resourceId }}")
        return
    try:
        go_template.check(str(target))
    except TemplateError as problem:
        yield error(path, f"target_cluster template: {problem}", "check the text between {{ and }}")
    if "{{" not in str(target) and kubernetes_names.dns1123_label(str(target)):
        message = "target_cluster must be a Kubernetes DNS-1123 label"
        yield error(path, message, "use lower case letters, digits and hyphens")


def _plurals(plurals: Any, path: str) -> Iterator[LoadProblem]:
    where = f"{path}.resource_plurals"
    if not isinstance(plurals, Mapping) or not plurals:
        message = "resource_plurals is required for remote transport"
        yield error(where, message, 'list every kind, such as "v1/ConfigMap": configmaps')
        return
    for key, plural in plurals.items():
        api_version, _, kind = str(key).rpartition("/")
        if not _API_VERSION.match(api_version) or not _KIND.match(kind):
            yield error(where, f'key "{key}" must be a static apiVersion/Kind', 'such as "apps/v1/Deployment"')
        if not _DNS_1035.match(str(plural)):
            message = f'["{key}"] must be a Kubernetes DNS-1035 label'
            yield error(where, message, "the plural in lower case, as in `kubectl api-resources`")
    yield from _collisions(where, {str(key): None for key in plurals})
