"""Complete the access options of a trace from an environment of `maestro config`.

    environments:
      prod:
        svc-context: prod-svc
        mgmt-context: mgmt-1=prod-mgmt-1,mgmt-2=prod-mgmt-2

The two groups of options are taken as a whole: if the command line names the database, a service or a way to it,
nothing of that group is read from the file, and likewise for the management clusters.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from maestropy.cli import environments
from maestropy.cli.client.connection import SETTINGS
from maestropy.cli.errors import UsageError
from maestropy.trace.access.options import HcpAccess, ManagementChoice, WorkAccess
from maestropy.trace.hcp.query import System

_SERVICE = ("svc-context", "svc-kubeconfig", "db", "db-dsn", "db-pod", "rest-url", "namespace")
_WAYS = ("auto", "maestro-db", "breakglass", "dsn", "rest", "none")
_CREDENTIALS = (
    "insecure-skip-verify",
    "grpc-ca-file",
    "grpc-token-file",
    "grpc-client-cert-file",
    "grpc-client-key-file",
)
_URLS = {System.FRONTEND: "frontend-url", System.CLUSTERS_SERVICE: "cs-url", System.MAESTRO: "rest-url"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentChoice:
    """The flags that choose an environment."""

    env: str = ""
    config: Path | None = None


def complete_work_access(access: WorkAccess, choice: EnvironmentChoice, environ: Mapping[str, str]) -> WorkAccess:
    """Return the access of a work trace, completed by the environment where the command line names no access."""
    name, path, stored = _chosen(choice, environ)
    changes: dict[str, Any] = {}
    if not _names_service(access):
        values = {key: stored[key] for key in _SERVICE if key in stored}
        if values.get("db", "auto") not in _WAYS:
            raise UsageError(f"{path}: environments.{name}.db is not one of {', '.join(_WAYS)}")
        changes |= {key.replace("-", "_"): _expanded(key, text) for key, text in values.items()}
        if "rest-url" in values:
            changes["rest_settings"] = {SETTINGS[key]: stored[key] for key in _CREDENTIALS if key in stored}
    if not _names_clusters(access):
        changes |= {
            field: _several(stored[key])
            for key, field in (("mgmt-context", "mgmt_contexts"), ("mgmt-kubeconfig", "mgmt_kubeconfigs"))
            if key in stored
        }
        changes |= {"agent_namespace": stored["agent-namespace"]} if "agent-namespace" in stored else {}
        changes |= {"logs": stored["logs"]} if "logs" in stored else {}
    if not changes.keys() - {"namespace", "agent_namespace", "logs"}:
        return replace(access, **changes)
    config = f"--config {shlex.quote(str(choice.config))}" if choice.config else ""
    beside = " ".join(filter(None, (config, access.flags)))
    return replace(access, **changes, environment=name, flags_beside_environment=beside)


def complete_hcp_access(access: HcpAccess, choice: EnvironmentChoice, environ: Mapping[str, str]) -> HcpAccess:
    """Return the access of an HCP trace, completed by the environment where the command line names no access."""
    if access.offline is not None:
        return access
    name, _, stored = _chosen(choice, environ)
    changes: dict[str, Any] = {}
    if not access.urls and not access.has_service:
        urls = {system: stored[key] for system, key in _URLS.items() if key in stored}
        changes |= {"urls": urls} if urls else {}
        for key in ("svc-context", "svc-kubeconfig"):
            if key in stored:
                changes[key.replace("-", "_")] = _expanded(key, stored[key])
    if not access.has_management:
        choices = _management_choices(stored)
        changes |= {"mgmt_choices": choices} if choices else {}
    return replace(access, **changes, environment=name if changes else "")


def endpoints(choice: EnvironmentChoice, environ: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the addresses of health and of metrics ports that the environment names."""
    _, _, stored = _chosen(choice, environ)
    return tuple(_several(stored.get("health-url", ""))), tuple(_several(stored.get("metrics-url", "")))


def hcp_access_of(access: WorkAccess, choice: EnvironmentChoice, environ: Mapping[str, str]) -> HcpAccess:
    """Return the access to the systems of a hosted control plane with the clusters of a work trace."""
    given = HcpAccess(
        urls={System.MAESTRO: access.rest_url} if access.rest_url and not access.environment else {},
        svc_kubeconfig="" if access.environment else access.svc_kubeconfig,
        svc_context="" if access.environment else access.svc_context,
        mgmt_choices=() if access.environment else _given_management(access),
        timeout_seconds=access.timeout_seconds,
    )
    return complete_hcp_access(given, choice, environ) if access.environment else given


def _given_management(access: WorkAccess) -> tuple[ManagementChoice, ...]:
    stored = {"mgmt-context": ",".join(access.mgmt_contexts), "mgmt-kubeconfig": ",".join(access.mgmt_kubeconfigs)}
    return _management_choices(stored)


def _chosen(choice: EnvironmentChoice, environ: Mapping[str, str]) -> tuple[str, Path, Mapping[str, str]]:
    if choice.config is not None and not choice.config.exists():
        raise UsageError(f"--config {choice.config} does not exist; give a file with `environments:`")
    stored = environments.read(choice.config or environments.default_path(environ))
    name = stored.choose(choice.env, environ)
    return name, stored.path, stored.named[name] if name else {}


def _names_service(access: WorkAccess) -> bool:
    ways = (access.svc_context, access.svc_kubeconfig, access.db_dsn, access.rest_url, access.offline)
    return access.db != "auto" or any(ways)


def _names_clusters(access: WorkAccess) -> bool:
    return bool(access.mgmt_contexts or access.mgmt_kubeconfigs or access.no_cluster or access.offline)


def _management_choices(stored: Mapping[str, str]) -> tuple[ManagementChoice, ...]:
    contexts = [_pair(text) for text in _several(stored.get("mgmt-context", ""))]
    files = [_pair(text) for text in _several(stored.get("mgmt-kubeconfig", ""))]
    if contexts:
        file = files[0][1] if files else ""
        return tuple(ManagementChoice(consumer=consumer, kubeconfig=file, context=name) for consumer, name in contexts)
    return tuple(ManagementChoice(consumer=consumer, kubeconfig=name) for consumer, name in files)


def _pair(written: str) -> tuple[str, str]:
    consumer, separator, name = written.partition("=")
    return (consumer, name) if separator else ("", written)


def _expanded(key: str, text: str) -> str:
    return str(Path(text).expanduser()) if key.endswith("kubeconfig") else text


def _several(text: str) -> Sequence[str]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
