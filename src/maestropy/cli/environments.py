"""Named environments: what connects to one Maestro or another, kept in a file so that nobody types it each time.

    current: local
    environments:
      local:
        rest-url: http://127.0.0.1:8000
        grpc-server-address: 127.0.0.1:8090

The keys are the flags of the commands without their dashes, those of `maestro trace work` included. A secret never
stands in the file: it names the files with the token, the certificate and the key. This module reads and writes the
file; what its values mean is not known here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from maestropy.cli.failure import UsageError

VARIABLE = "MAESTRO_ENVIRONMENT"
KEYS = (
    "rest-url",
    "insecure-skip-verify",
    "timeout",
    "grpc-server-address",
    "grpc-source-id",
    "grpc-ca-file",
    "grpc-token-file",
    "grpc-client-cert-file",
    "grpc-client-key-file",
)
TRACE_KEYS = (
    "svc-context",
    "svc-kubeconfig",
    "mgmt-context",
    "mgmt-kubeconfig",
    "namespace",
    "agent-namespace",
    "db",
    "db-dsn",
    "db-pod",
)
"""What `maestro trace work` takes besides; several contexts or files stand behind each other, with commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """What the file says."""

    path: Path
    current: str = ""
    """The environment that counts when nobody names one; empty if there is none."""
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def choose(self, wanted: str, environ: Mapping[str, str]) -> str:
        """Return the environment that counts: `--env`, else the variable, else the current one; empty for none."""
        for name, origin in ((wanted, "--env"), (environ.get(VARIABLE, ""), VARIABLE), (self.current, str(self.path))):
            if name:
                self.get(name, origin=origin)
                return name
        return ""

    def get(self, name: str, *, origin: str = "") -> Mapping[str, str]:
        """Return the settings of one environment, or say which there are."""
        if name not in self.named:
            known = f"it has {', '.join(self.named)}" if self.named else "it has none"
            says = f"{origin} says" if origin else "asked for is"
            raise UsageError(
                f"{says} {name!r}, which is no environment of {self.path}: {known}; "
                f"make it with `maestro config set-env {name} --rest-url ...`"
            )
        return self.named[name]

    def put(self, name: str, values: Mapping[str, str], *, use: bool = False) -> "Environments":
        """Return them with some settings of one environment set; the first environment is also the current one."""
        if not name or not all(letter.isalnum() or letter in "-_." for letter in name):
            raise UsageError(f"{name!r} cannot be the name of an environment; use letters, digits, dashes and dots")
        named = {**self.named, name: {**self.named.get(name, {}), **values}}
        return replace(self, named=named, current=name if use or not self.named else self.current)

    def without(self, name: str) -> "Environments":
        """Return them without one."""
        self.get(name)
        named = {each: values for each, values in self.named.items() if each != name}
        return replace(self, named=named, current="" if self.current == name else self.current)


def default_path(environ: Mapping[str, str]) -> Path:
    """Return where this user's configuration belongs by the XDG base directory rules."""
    home = Path(environ.get("XDG_CONFIG_HOME", ""))
    # The rules say to ignore a relative one.
    if not home.is_absolute():
        home = Path(environ.get("HOME") or Path.home()) / ".config"
    return home / "maestropy" / "config.yaml"


def read(path: Path) -> Environments:
    """Return what the file says; one that is not there says nothing."""
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Environments(path=path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} cannot be read: {reason}; mend it or move it away") from error
    return _parse(content, path)


def write(found: Environments) -> None:
    """Replace the file at once: nobody ever reads half of it."""
    import tempfile

    import yaml

    document: dict[str, Any] = {"current": found.current} if found.current else {}
    document["environments"] = {name: dict(values) for name, values in found.named.items()}
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=found.path.parent, delete=False, encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        os.replace(file.name, found.path)  # noqa: PTH105 - the name is a text here
    except OSError as error:
        raise UsageError(
            f"{found.path} cannot be written: {error.strerror}; give XDG_CONFIG_HOME a folder of yours"
        ) from error


def _parse(content: str, path: Path) -> Environments:
    import yaml

    try:
        document = yaml.safe_load(content) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{path}{where}: this is no YAML; mend it or move it away") from None
    named = document.get("environments") or {} if isinstance(document, dict) else None
    if not isinstance(named, dict):
        raise UsageError(f"{path} holds no `environments:`; make one with `maestro config set-env`")
    return Environments(
        path=path,
        current=str(document.get("current") or ""),
        named={str(name): _settings(values, f"{path}: environments.{name}") for name, values in named.items()},
    )


def _settings(values: Any, origin: str) -> dict[str, str]:
    if not isinstance(values, dict):
        raise UsageError(f"{origin} holds no settings; write lines such as `rest-url: https://maestro:8000`")
    for key, value in values.items():
        if key not in (*KEYS, *TRACE_KEYS):
            # Without the value: it may be the token that somebody wrote here.
            raise UsageError(f"{origin}.{key} is not a setting; use {', '.join((*KEYS, *TRACE_KEYS))}")
        if not isinstance(value, (str, bool, int, float)):
            raise UsageError(f"{origin}.{key} must be a text")
    refuse_password(values, f"{origin}.")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


def refuse_password(values: Mapping[str, Any], origin: str) -> None:
    """Refuse the address of a database with a password in it, as a URL or as words."""
    dsn = str(values.get("db-dsn", ""))
    if "password" in dsn or urlsplit(dsn).password:
        raise UsageError(f"{origin}db-dsn holds a password; keep it in ~/.pgpass, or set PGPASSWORD")
