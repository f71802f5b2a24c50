"""What an environment of `maestro config` adds to a trace: the sides that the command line does not name.

    environments:
      prod:
        svc-context: prod-svc
        mgmt-context: mgmt-1=prod-mgmt-1,mgmt-2=prod-mgmt-2

A side is taken as a whole: whoever names the database, or a way to it, gets nothing of it from the file, and likewise
for the management clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from maestropy.cli import environments
from maestropy.cli.connection import SETTINGS
from maestropy.cli.failure import UsageError
from maestropy.cli.trace_options import AccessOptions

_SERVICE = ("svc-context", "svc-kubeconfig", "db", "db-dsn", "db-pod", "rest-url", "namespace")
_CLUSTERS = ("mgmt-context", "mgmt-kubeconfig", "agent-namespace")
_MANY = {"mgmt-context", "mgmt-kubeconfig"}
_WAYS = ("auto", "maestro-db", "breakglass", "dsn", "rest", "none")
_CREDENTIALS = (
    "insecure-skip-verify",
    "grpc-ca-file",
    "grpc-token-file",
    "grpc-client-cert-file",
    "grpc-client-key-file",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The ways to both sides, completed."""

    options: AccessOptions
    name: str = ""
    """The environment that was used; empty if none added anything."""
    client: Mapping[str, Any] = field(default_factory=dict)
    """What proves to the REST API who we are, as the client takes it."""


def complete(options: AccessOptions, environ: Mapping[str, str]) -> Access:
    """Return `options` with what the chosen environment says about sides that they do not name."""
    if options.config is not None and not options.config.exists():
        raise UsageError(f"--config {options.config} does not exist; give a file with `environments:`")
    found = environments.read(options.config or environments.default_path(environ))
    name = found.choose(options.env, environ)
    stored = found.named[name] if name else {}
    wanted = [*_SERVICE] if not _names_service(options) else []
    wanted += [*_CLUSTERS] if not _names_clusters(options) else []
    said = {key: stored[key] for key in wanted if key in stored}
    if said.get("db", "auto") not in _WAYS:
        raise UsageError(f"{found.path}: environments.{name}.db is not one of {', '.join(_WAYS)}")
    changes: dict[str, Any] = {key.replace("-", "_"): _value(key, text) for key, text in said.items()}
    is_used = bool(said.keys() - {"namespace", "agent-namespace"})
    credentials = {SETTINGS[key]: stored[key] for key in _CREDENTIALS if key in stored} if "rest-url" in said else {}
    return Access(options=replace(options, **changes), name=name if is_used else "", client=credentials)


def _names_service(options: AccessOptions) -> bool:
    ways = (options.svc_context, options.svc_kubeconfig, options.db_dsn, options.rest_url, options.offline)
    return options.db != "auto" or any(ways)


def _names_clusters(options: AccessOptions) -> bool:
    return bool(options.mgmt_context or options.mgmt_kubeconfig or options.no_cluster or options.offline)


def _value(key: str, text: str) -> str | list[str]:
    if key not in _MANY:
        return str(Path(text).expanduser()) if key.endswith("kubeconfig") else text
    return [part.strip() for part in text.split(",") if part.strip()]
