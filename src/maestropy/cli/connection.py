"""The flags that say where Maestro is, shared by all commands that are clients, and the client they make.

For each setting on its own: a flag wins over a variable, a variable over the chosen environment of the configuration
file, that over the default. What is wrong is told under the name by which it was given.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Group, Parameter

from maestropy.cli import environments

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.settings import Options

DEFAULTS = {"api_url": "https://127.0.0.1:30080", "grpc_url": "127.0.0.1:30090", "source": "maestro-cli"}

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
"""What the command line calls a setting, and what the client calls it."""

_NOBODY_SAID_WHERE = (
    "this is the default: give --rest-url and --grpc-server-address, or keep them with `maestro config set-env`"
)
_GROUP = Group("Connection", sort_key=90)


def _flag(name: str, text: str) -> Parameter:
    return Parameter(name=name, help=text, group=_GROUP, negative=(), show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestAddress:
    """How the REST API is reached."""

    rest_url: Annotated[
        str | None, _flag("--rest-url", f"The REST API (MAESTRO_REST_URL) [{DEFAULTS['api_url']}].")
    ] = None
    insecure_skip_verify: Annotated[
        bool | None,
        _flag("--insecure-skip-verify", "Trust any REST server (MAESTRO_REST_INSECURE_SKIP_VERIFY) [false]."),
    ] = None
    timeout: Annotated[
        str | None, _flag("--timeout", "How long a request, or a wait, may take (MAESTRO_REST_TIMEOUT) [30s].")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestFlags(RestAddress):
    """How the REST API is reached, or in which environment to look it up."""

    env: Annotated[
        str | None,
        _flag("--env", "An environment of `maestro config` (MAESTRO_ENVIRONMENT) [the one that is in use]."),
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcFlags:
    """How the gRPC endpoint for sources is reached."""

    grpc_server_address: Annotated[
        str | None,
        _flag(
            "--grpc-server-address",
            f"The gRPC endpoint (MAESTRO_GRPC_SERVER_ADDRESS) [{DEFAULTS['grpc_url']}].",
        ),
    ] = None
    grpc_source_id: Annotated[
        str | None, _flag("--grpc-source-id", "Who we are (MAESTRO_GRPC_SOURCE_ID) [maestro-cli].")
    ] = None
    grpc_ca_file: Annotated[
        Path | None, _flag("--grpc-ca-file", "Whom to trust (MAESTRO_GRPC_CA_FILE) [the system's authorities].")
    ] = None
    grpc_token_file: Annotated[Path | None, _flag("--grpc-token-file", "A bearer token (MAESTRO_GRPC_TOKEN_FILE).")] = (
        None
    )
    grpc_client_cert_file: Annotated[
        Path | None, _flag("--grpc-client-cert-file", "Our certificate (MAESTRO_GRPC_CLIENT_CERT_FILE).")
    ] = None
    grpc_client_key_file: Annotated[
        Path | None, _flag("--grpc-client-key-file", "Its key (MAESTRO_GRPC_CLIENT_KEY_FILE).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One setting, and where it comes from."""

    key: str
    """Its name on the command line, without dashes."""
    name: str
    """Its name in the client."""
    value: str
    origin: str


def given_flags(*groups: RestAddress | GrpcFlags | None) -> dict[str, str]:
    """Return what the command line says, by key."""
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
) -> Iterator[Given]:
    """Yield every setting that somebody gives, or that has a default."""
    for key, name in SETTINGS.items():
        variable = next((each for each in variables[name] if environ.get(each)), "")
        if key in flags:
            yield Given(key=key, name=name, value=flags[key], origin=f"--{key}")
        elif variable:
            yield Given(key=key, name=name, value=environ[variable], origin=variable)
        elif key in stored:
            yield Given(key=key, name=name, value=stored[key], origin=f"{key} in {stored_origin}")
        elif name in DEFAULTS:
            yield Given(key=key, name=name, value=DEFAULTS[name], origin="default")


def settle(rest: RestAddress | None, grpc: GrpcFlags | None = None) -> list[Given]:
    """Return the settings that hold for this command, checked."""
    from maestropy.sdk import settings

    found = environments.read(environments.default_path(os.environ))
    chosen = found.choose(getattr(rest, "env", None) or "", os.environ)
    held = list(
        resolve(
            given_flags(rest, grpc),
            os.environ,
            stored=found.named[chosen] if chosen else {},
            stored_origin=f"environment {chosen} of {found.path}",
            variables=settings.VARIABLES,
        )
    )
    settings.load(options(held), {}, called={each.name: each.origin for each in held})
    return held


def for_tracing(rest: RestAddress | None) -> list[Given]:
    """Return what the chosen environment says about whom traces ask."""
    found = environments.read(environments.default_path(os.environ))
    chosen = found.choose(getattr(rest, "env", None) or "", os.environ)
    stored = found.named[chosen] if chosen else {}
    origin = f"environment {chosen} of {found.path}"
    return [
        Given(key=key, name=key, value=stored[key], origin=f"{key} in {origin}")
        for key in environments.TRACE_KEYS
        if key in stored
    ]


def options(held: list[Given]) -> "Options":
    """Return settings as a client takes them."""
    return cast("Options", {each.name: each.value for each in held})


@contextmanager
def open_client(rest: RestFlags | None, grpc: GrpcFlags | None = None) -> Iterator["Maestro"]:
    """Give the client that flags, variables, the chosen environment and defaults describe, and close it."""
    held = settle(rest, grpc)
    from maestropy.sdk import errors
    from maestropy.sdk.blocking import Maestro
    from maestropy.sdk.retry import RetryPolicy

    # A person who waits wants to hear within a second or two that nobody answers, and can repeat the command.
    # What has no flag (the authorities of REST alone) is still read from the variables.
    given = options(held)
    given["retry"] = RetryPolicy(attempts=3)
    with Maestro(**given) as client:
        try:
            yield client
        except errors.Unavailable as error:
            if any(each.origin == "default" and each.value in error.reason for each in held):
                error.advice = _NOBODY_SAID_WHERE
            raise


def wait_seconds(rest: RestFlags | None) -> float:
    """Return how long `--wait` waits."""
    from maestropy.sdk import settings

    return settings.load(options([each for each in settle(rest) if each.name == "timeout"]), {}).timeout
