"""Build `ServerSettings` from the command line and the environment.

The command line takes precedence over the environment, the environment over the defaults. Pure: `locate` reads files.
Values are text, so that all flags report mistakes in the same way.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from maestropy.flags import Flag, SettingsError, flags_of, override
from maestropy.server.settings.check import check
from maestropy.server.settings.model import ServerSettings

FLAGS: Mapping[str, Flag] = {flag.name: flag for flag in flags_of(ServerSettings)}

# Defaults of MAESTRO_ENV. In Go an unset MAESTRO_ENV means development with -v=10; here it sets nothing, so that a
# server without flags does not log every payload.
PRESETS: Mapping[str, Mapping[str, str]] = {
    "": {},
    "development": {
        "-v": "10",
        "--enable-https": "false",
        "--enable-metrics-https": "false",
        "--server-hostname": "localhost",
        "--http-server-bindport": "8000",
        "--source-id": "maestro",
    },
    "testing": {
        "-v": "0",
        "--enable-https": "false",
        "--enable-metrics-https": "false",
        "--source-id": "maestro",
    },
    "production": {"-v": "1", "--source-id": "maestro"},
}

_DATABASE_FILES = frozenset(
    {"--db-host-file", "--db-port-file", "--db-user-file", "--db-password-file", "--db-name-file"}
)


def load(flags: Mapping[str, str], environ: Mapping[str, str]) -> ServerSettings:
    """Return the checked settings; `flags` maps flags, such as `--client-id`, to their text."""
    texts = {**_from_environment(environ), **flags}
    settings = override(ServerSettings(), texts, flags=FLAGS, command="server")
    database = replace(
        settings.database,
        files_are_given=not _DATABASE_FILES.isdisjoint(flags),
        data_dir_is_given="--data-dir" in flags,
    )
    settings = replace(
        settings,
        database=database,
        http=replace(
            settings.http,
            hostname=_without_brackets(settings.http.hostname),
            https_is_given="--enable-https" in flags,
        ),
        broker=replace(
            settings.broker,
            type_is_given="--message-broker-type" in flags,
            file_is_given="--message-broker-config-file" in flags,
        ),
        grpc=replace(settings.grpc, authn_type_is_given="--grpc-authn-type" in flags),
    )
    check(settings)
    return settings


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Return the data directory of the user by the XDG base directory specification."""
    data_home = Path(environ.get("XDG_DATA_HOME", ""))
    # The specification ignores a relative path.
    if not data_home.is_absolute():
        data_home = Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return data_home / "maestropy"


def _without_brackets(hostname: str) -> str:
    """Return an IPv6 address without the brackets that the Go server needs; everything else as it is."""
    inner = hostname.removeprefix("[").removesuffix("]")
    return inner if hostname == f"[{inner}]" and ":" in inner else hostname


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    kind = environ.get("MAESTRO_ENV", "")
    if kind not in PRESETS:
        known = ", ".join(name for name in PRESETS if name)
        raise SettingsError(f"MAESTRO_ENV={kind} is not known; use one of {known}, or leave it unset")
    texts = {"--data-dir": str(default_data_dir(environ)), **PRESETS[kind]}
    if environ.get("MAESTRO_DB_DSN"):
        texts["--db-dsn"] = environ["MAESTRO_DB_DSN"]
    if environ.get("MAESTRO_DB_LISTEN_DSN"):
        texts["--db-listen-dsn"] = environ["MAESTRO_DB_LISTEN_DSN"]
    if environ.get("MAESTRO_DB_READ_DSN"):
        texts["--db-read-dsn"] = environ["MAESTRO_DB_READ_DSN"]
    if kind == "testing" and environ.get("DB_DEBUG") == "true":
        texts["--enable-db-debug"] = "true"
    return texts
