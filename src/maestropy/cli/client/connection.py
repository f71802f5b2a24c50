"""Connection flags of all client commands, and the client that they configure.

For each setting a flag overrides an environment variable, a variable overrides the chosen environment of the
configuration file, and that overrides the default. An error names the flag, variable or key that holds the value.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Group, Parameter

from maestropy.cli import environments, screen
from maestropy.wire import source_ids

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.settings import ClientOptions

DEFAULTS = {"api_url": "https://127.0.0.1:30080", "grpc_url": "127.0.0.1:30090", "source": source_ids.COMMAND_LINE}

SETTINGS: Mapping[str, str] = {
    "rest-url": "api_url",
    "insecure-skip-verify": "insecure_skip_verify",
    "timeout": "timeout",
    "grpc-server-address": "grpc_url",
    "grpc-source-id": "source",
    "grpc-ca-file": "ca_file",
    "grpc-token-file": "token_file",
    "grpc-client-cert-file": "client_cert_file",
    "grpc-client-key-file": "client_key_file",
}
"""The setting of the client for each flag."""

_DEFAULT_ADDRESS_ADVICE = (
    "this is the default address: give --rest-url and --grpc-server-address, "
    "or store them with `maestro config set-env`"
)
_GROUP = Group("Connection", sort_key=90)


def _flag(name: str, text: str) -> Parameter:
    return Parameter(name=name, help=text, group=_GROUP, negative=(), show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestAddress:
    """Flags for the REST API."""

    rest_url: Annotated[
        str | None, _flag("--rest-url", f"The REST API (MAESTRO_REST_URL) [{DEFAULTS['api_url']}].")
    ] = None
    insecure_skip_verify: Annotated[
        bool | None,
        _flag(
            "--insecure-skip-verify",
            "Do not verify the REST server's certificate (MAESTRO_REST_INSECURE_SKIP_VERIFY) [false].",
        ),
    ] = None
    timeout: Annotated[
        str | None, _flag("--timeout", "The timeout of a request or a wait (MAESTRO_REST_TIMEOUT) [30s].")
    ] = None
    # One token for REST and gRPC: this is the setting that Maestro's own flag --grpc-token-file has.
    grpc_token_file: Annotated[
        Path | None,
        _flag("--token-file", "A file with a bearer token, sent over https only (MAESTRO_TOKEN_FILE)."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestFlags(RestAddress):
    """Flags for the REST API, and the environment that holds its address."""

    env: Annotated[
        str | None,
        _flag("--env", "An environment of `maestro config` (MAESTRO_ENVIRONMENT) [the current one]."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcFlags:
    """Flags for the gRPC endpoint for sources."""

    grpc_server_address: Annotated[
        str | None,
        _flag(
            "--grpc-server-address",
            f"The gRPC endpoint (MAESTRO_GRPC_SERVER_ADDRESS) [{DEFAULTS['grpc_url']}].",
        ),
    ] = None
    grpc_source_id: Annotated[
        str | None, _flag("--grpc-source-id", "The source ID (MAESTRO_GRPC_SOURCE_ID) [maestro-cli].")
    ] = None
    grpc_ca_file: Annotated[
        Path | None,
        _flag("--grpc-ca-file", "The CA file (MAESTRO_GRPC_CA_FILE) [the system's certificate authorities]."),
    ] = None
    grpc_token_file: Annotated[
        Path | None, _flag("--grpc-token-file", "A file with a bearer token (MAESTRO_GRPC_TOKEN_FILE).")
    ] = None
    grpc_client_cert_file: Annotated[
        Path | None, _flag("--grpc-client-cert-file", "The client certificate (MAESTRO_GRPC_CLIENT_CERT_FILE).")
    ] = None
    grpc_client_key_file: Annotated[
        Path | None,
        _flag("--grpc-client-key-file", "The key of the client certificate (MAESTRO_GRPC_CLIENT_KEY_FILE)."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSetting:
    """One setting, with its origin."""

    key: str
    """Its name on the command line, without dashes."""
    name: str
    """Its name in the client."""
    value: str
    origin: str


def flag_values(*groups: RestAddress | GrpcFlags | None) -> dict[str, str]:
    """Return the flags of the command line, by key."""
    values = {}
    for group in groups:
        for key in SETTINGS:
            value = getattr(group, key.replace("-", "_"), None)
            if value is not None:
                values[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


def resolve(
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    *,
    stored: Mapping[str, str],
    stored_origin: str,
    variables: Mapping[str, tuple[str, ...]],
) -> Iterator[ResolvedSetting]:
    """Yield every setting that has a value or a default."""
    for key, name in SETTINGS.items():
        variable = next((candidate for candidate in variables[name] if environ.get(candidate)), "")
        if key in flags:
            yield ResolvedSetting(key=key, name=name, value=flags[key], origin=f"--{key}")
        elif variable:
            yield ResolvedSetting(key=key, name=name, value=environ[variable], origin=variable)
        elif key in stored:
            yield ResolvedSetting(key=key, name=name, value=stored[key], origin=f"{key} in {stored_origin}")
        elif name in DEFAULTS:
            yield ResolvedSetting(key=key, name=name, value=DEFAULTS[name], origin="default")


def overridden(resolved: list[ResolvedSetting], stored: Mapping[str, str], *, environment: str) -> str:
    """Return a warning about variables that override other values of the environment that `--env` names."""
    winners = [
        f"{setting.origin} overrides {setting.key}"
        for setting in resolved
        if setting.key in stored and setting.value != stored[setting.key] and setting.origin != f"--{setting.key}"
    ]
    if not winners:
        return ""
    return f"Warning: {', '.join(winners)} of --env {environment}; unset the variable to use that environment\n"


def resolve_settings(rest: RestAddress | None, grpc: GrpcFlags | None = None) -> list[ResolvedSetting]:
    """Return the validated settings of this command."""
    from maestropy.sdk import settings

    configured = environments.read(environments.default_path(os.environ))
    chosen = configured.choose(getattr(rest, "env", None) or "", os.environ)
    resolved = list(
        resolve(
            flag_values(rest, grpc),
            os.environ,
            stored=configured.named[chosen] if chosen else {},
            stored_origin=f"environment {chosen} of {configured.path}",
            variables=settings.VARIABLES,
        )
    )
    settings.load(options(resolved), {}, origin_names={setting.name: setting.origin for setting in resolved})
    return resolved


def trace_settings(rest: RestAddress | None) -> list[ResolvedSetting]:
    """Return the trace settings of the chosen environment."""
    configured = environments.read(environments.default_path(os.environ))
    chosen = configured.choose(getattr(rest, "env", None) or "", os.environ)
    stored = configured.named[chosen] if chosen else {}
    origin = f"environment {chosen} of {configured.path}"
    return [
        ResolvedSetting(key=key, name=key, value=stored[key], origin=f"{key} in {origin}")
        for key in environments.TRACE_KEYS
        if key in stored
    ]


def options(resolved: list[ResolvedSetting]) -> "ClientOptions":
    """Return settings as options of a client."""
    return cast("ClientOptions", {setting.name: setting.value for setting in resolved})


@contextmanager
def open_client(rest: RestFlags | None, grpc: GrpcFlags | None = None) -> Iterator["Maestro"]:
    """Open a client from flags, variables, the chosen environment and defaults; close it at the end."""
    resolved = resolve_settings(rest, grpc)
    if rest is not None and rest.env:
        stored = environments.read(environments.default_path(os.environ)).get(rest.env)
        screen.write_error(overridden(resolved, stored, environment=rest.env))
    from maestropy.sdk import errors, settings

    screen.write_error(_variables_warning(resolved, os.environ, settings.VARIABLES))
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.retry import RetryPolicy

    # A user at a terminal needs the error within seconds and can repeat the command.
    # Settings without a flag, such as the CA file of REST, are still read from the variables.
    client_options = options(resolved)
    timeout = settings.load(client_options, {}).timeout
    # No retry begins after the timeout: otherwise three attempts would take three times as long.
    client_options["retry"] = RetryPolicy(attempts=3, deadline_seconds=min(timeout, RetryPolicy().deadline_seconds))
    with Maestro(**client_options) as client:
        try:
            yield client
        except errors.Unavailable as error:
            error.advice = _advice(error.reason, resolved) or error.advice
            raise


def _variables_warning(
    resolved: list[ResolvedSetting], environ: Mapping[str, str], variables: Mapping[str, tuple[str, ...]]
) -> str:
    """Return which variables of one setting differ, and which of them counts; empty if none do."""
    lines = []
    for setting in resolved:
        names = variables[setting.name]
        others = [name for name in names if environ.get(name, setting.value) not in ("", setting.value)]
        if setting.origin in names and others:
            lines.append(f"Warning: {setting.origin} counts, and {' and '.join(others)} differs; unset one of them\n")
    return "".join(lines)


def _advice(reason: str, resolved: list[ResolvedSetting]) -> str:
    """Return what the settings say about a failed connection; empty if nothing."""
    if any(setting.origin == "default" and setting.value in reason for setting in resolved):
        return _DEFAULT_ADDRESS_ADVICE
    return ""


def wait_seconds(rest: RestFlags | None) -> float:
    """Return the timeout of `--wait`."""
    from maestropy.sdk import settings

    return settings.load(
        options([setting for setting in resolve_settings(rest) if setting.name == "timeout"]), {}
    ).timeout
