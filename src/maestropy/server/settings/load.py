"""Turn what the command line and the environment say into `ServerSettings`.

The command line wins over the environment, the environment over the defaults. Pure: files are named here and read by
`locate`. The values arrive as text, so that one table of kinds explains every mistake the same way.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from maestropy.flags import Flag, SettingsError, fill, flags_of
from maestropy.server.settings.check import check
from maestropy.server.settings.model import ServerSettings

FLAGS: Mapping[str, Flag] = {flag.name: flag for flag in flags_of(ServerSettings)}

# What MAESTRO_ENV sets before the command line is read. In Go an unset MAESTRO_ENV means development with its -v=10;
# here it sets nothing: someone who starts a server without a word should see what it does, not every byte.
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


def load(given: Mapping[str, str], environ: Mapping[str, str]) -> ServerSettings:
    """Return the checked settings; `given` maps flags, such as `--client-id`, to their text."""
    texts = {**_from_environment(environ), **given}
    settings = fill(ServerSettings(), texts, flags=FLAGS, command="server")
    are_given = not _DATABASE_FILES.isdisjoint(given)
    settings = replace(settings, database=replace(settings.database, files_are_given=are_given))
    check(settings)
    return settings


def default_data_dir(environ: Mapping[str, str]) -> Path:
    """Return where this user's data belongs by the XDG base directory rules."""
    data_home = Path(environ.get("XDG_DATA_HOME", ""))
    # The rules say to ignore a relative one.
    if not data_home.is_absolute():
        data_home = Path(environ.get("HOME") or Path.home()) / ".local" / "share"
    return data_home / "maestropy"


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    kind = environ.get("MAESTRO_ENV", "")
    if kind not in PRESETS:
        known = ", ".join(name for name in PRESETS if name)
        raise SettingsError(f"MAESTRO_ENV={kind} is not known; use one of {known}, or leave it unset")
    found = {"--data-dir": str(default_data_dir(environ)), **PRESETS[kind]}
    if environ.get("MAESTRO_DB_DSN"):
        found["--db-dsn"] = environ["MAESTRO_DB_DSN"]
    if kind == "testing" and environ.get("DB_DEBUG") == "true":
        found["--enable-db-debug"] = "true"
    return found
