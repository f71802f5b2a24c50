"""Read and write the configuration file with named environments: addresses and credential files of Maestro servers.

    current: local
    environments:
      local:
        rest-url: http://127.0.0.1:8000
        grpc-server-address: 127.0.0.1:8090

The keys are the flags of the commands without their dashes, those of `maestro trace work` included. The file contains
no secrets, only the paths of files with token, certificate and key. This module does not interpret the values.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from maestropy.cli.errors import UsageError
from maestropy.untrusted import addresses, files
from maestropy.untrusted.errors import InputRejected

_LOCK_SECONDS = 30
"""Another command holds the lock for milliseconds."""
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
    "frontend-url",
    "cs-url",
    "logs",
    "health-url",
    "metrics-url",
)
"""Additional keys of `maestro trace` and `maestro diagnose collect`; several values are separated by commas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """The content of the file."""

    path: Path
    current: str = ""
    """The environment that is used by default; empty if there is none."""
    named: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def choose(self, flag: str, environ: Mapping[str, str]) -> str:
        """Return the environment to use: `--env`, else the variable, else the current one; empty for none."""
        for name, origin in ((flag, "--env"), (environ.get(VARIABLE, ""), VARIABLE), (self.current, str(self.path))):
            if name:
                self.get(name, origin=origin)
                return name
        return ""

    def get(self, name: str, *, origin: str = "") -> Mapping[str, str]:
        """Return the settings of one environment, or raise with the existing ones."""
        if name not in self.named:
            existing = f"it has {', '.join(self.named)}" if self.named else "it has none"
            prefix = f"{origin}: " if origin else ""
            raise UsageError(
                f"{prefix}environment {name!r} is not in {self.path}: {existing}; "
                f"create it with `maestro config set-env {name} --rest-url ...`"
            )
        return self.named[name]

    def put(self, name: str, values: Mapping[str, str], *, use: bool = False) -> "Environments":
        """Return a copy with some settings of one environment set; the first environment becomes the current one."""
        if not name or not all(character.isalnum() or character in "-_." for character in name):
            raise UsageError(f"{name!r} cannot be the name of an environment; use letters, digits, dashes and dots")
        named = {**self.named, name: {**self.named.get(name, {}), **values}}
        return replace(self, named=named, current=name if use or not self.named else self.current)

    def without(self, name: str) -> "Environments":
        """Return a copy without one environment."""
        self.get(name)
        named = {other: values for other, values in self.named.items() if other != name}
        return replace(self, named=named, current="" if self.current == name else self.current)


def default_path(environ: Mapping[str, str]) -> Path:
    """Return the path of this user's configuration file, as the XDG base directory specification defines it."""
    home = Path(environ.get("XDG_CONFIG_HOME", ""))
    # The XDG specification says to ignore a relative path.
    if not home.is_absolute():
        home = Path(environ.get("HOME") or Path.home()) / ".config"
    return home / "maestropy" / "config.yaml"


def read(path: Path) -> Environments:
    """Return the content of the file; no environments if it does not exist."""
    try:
        content = files.read_text(path, most=files.CONFIG_BYTES)
    except FileNotFoundError:
        return Environments(path=path)
    except InputRejected as error:
        raise UsageError(f"{error}; fix it or move it away") from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"{path} cannot be read: {reason}; fix it or move it away") from error
    return _parse(content, path)


def change(path: Path, changed: Callable[[Environments], Environments]) -> Environments:
    """Read the file, change its content and replace it, while no other command does; return the new content."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.parent):
            config = changed(read(path))
            write(config)
    except OSError as error:
        raise _unwritable(path, error) from error
    return config


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder; the kernel releases it when the process ends."""
    import fcntl
    import time

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(f"another command has locked {folder} for {_LOCK_SECONDS} s; end it") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def write(config: Environments) -> None:
    """Replace the file atomically."""
    import tempfile

    import yaml

    document: dict[str, Any] = {"current": config.current} if config.current else {}
    document["environments"] = {name: dict(values) for name, values in config.named.items()}
    try:
        config.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=config.path.parent, delete=False, encoding="utf-8") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        os.replace(file.name, config.path)  # noqa: PTH105 - the name is a string here
    except OSError as error:
        raise _unwritable(config.path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written: {error.strerror}; set XDG_CONFIG_HOME to a folder you can write to")


def _parse(content: str, path: Path) -> Environments:
    import yaml

    from maestropy.untrusted import yaml_documents

    try:
        document = yaml_documents.load(content, loader=yaml_documents.UniqueKeysLoader) or {}
    except InputRejected as error:
        raise UsageError(f"{path} cannot be used: {error}; fix it or move it away") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise UsageError(f"{path}{position}: this is not YAML; fix it or move it away") from None
    named = document.get("environments") or {} if isinstance(document, dict) else None
    if not isinstance(named, dict):
        raise UsageError(f"{path} has no `environments:`; create one with `maestro config set-env`")
    return Environments(
        path=path,
        current=str(document.get("current") or ""),
        named={str(name): _settings(values, f"{path}: environments.{name}") for name, values in named.items()},
    )


def _settings(values: Any, origin: str) -> dict[str, str]:
    if not isinstance(values, dict):
        raise UsageError(f"{origin} has no settings; write lines such as `rest-url: https://maestro:8000`")
    for key, value in values.items():
        if key not in (*KEYS, *TRACE_KEYS):
            # Without the value, which may be a token.
            raise UsageError(f"{origin}.{key} is not a setting; use {', '.join((*KEYS, *TRACE_KEYS))}")
        if not isinstance(value, (str, bool, int, float)):
            raise UsageError(f"{origin}.{key} must be a string")
    reject_password(values, f"{origin}.")
    return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}


def reject_password(values: Mapping[str, Any], origin: str) -> None:
    """Reject addresses with a login, and a database address that contains a password, as a URL or as keywords."""
    for key in ("rest-url", "grpc-server-address", "frontend-url", "cs-url"):
        if addresses.has_login(str(values.get(key, ""))):
            raise UsageError(f"{origin}{key} contains a user or password; keep a token in a file (grpc-token-file)")
    dsn = str(values.get("db-dsn", ""))
    if "password" in dsn or urlsplit(dsn).password:
        raise UsageError(f"{origin}db-dsn contains a password; keep it in ~/.pgpass, or set PGPASSWORD")
