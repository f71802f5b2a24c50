"""The flags that say where Maestro is, shared by all commands that are clients, and the client they make."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

if TYPE_CHECKING:
    from pymaestro.sdk.blocking import Maestro
    from pymaestro.sdk.settings import Options

DEFAULTS = {"api_url": "https://127.0.0.1:30080", "grpc_url": "127.0.0.1:30090", "source": "maestro-cli"}

_GROUP = Group("Connection", sort_key=90)


def _flag(name: str, text: str) -> Parameter:
    return Parameter(name=name, help=text, group=_GROUP, negative=(), show_default=False)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RestFlags:
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

    def options(self) -> "Options":
        """Return what was given, in the client's terms."""
        given: Options = {}
        if self.rest_url is not None:
            given["api_url"] = self.rest_url
        if self.insecure_skip_verify is not None:
            given["insecure_skip_verify"] = self.insecure_skip_verify
        if self.timeout is not None:
            given["timeout"] = self.timeout  # type: ignore[typeddict-item]  # read there: 30s, or seconds
        return given


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

    def options(self) -> "Options":
        """Return what was given, in the client's terms."""
        given: dict[str, object] = {
            "grpc_url": self.grpc_server_address,
            "source": self.grpc_source_id,
            "ca_file": self.grpc_ca_file,
            "token_file": self.grpc_token_file,
            "client_cert_file": self.grpc_client_cert_file,
            "client_key_file": self.grpc_client_key_file,
        }
        return {name: value for name, value in given.items() if value is not None}  # type: ignore[return-value]


def open_client(rest: RestFlags | None, grpc: GrpcFlags | None = None) -> "Maestro":
    """Return the client that flags, environment and defaults describe, in this order."""
    from pymaestro.sdk import settings
    from pymaestro.sdk.blocking import Maestro

    given: Options = {**(rest.options() if rest else {}), **(grpc.options() if grpc else {})}
    return Maestro(environ=with_defaults(os.environ, variables=settings.VARIABLES), **given)


def wait_seconds(rest: RestFlags | None) -> float:
    """Return how long `--wait` waits."""
    from pymaestro.sdk import settings

    given = rest.options() if rest else {}
    return settings.load(given, {"MAESTRO_REST_TIMEOUT": os.environ.get("MAESTRO_REST_TIMEOUT", "")}).timeout


def with_defaults(environ: Mapping[str, str], *, variables: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return the environment with the command's defaults for what nobody has set."""
    missing = {
        variables[name][0]: value
        for name, value in DEFAULTS.items()
        if not any(environ.get(variable) for variable in variables[name])
    }
    return {**environ, **missing}
