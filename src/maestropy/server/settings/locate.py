"""Find out which database the settings mean.

A `--db-dsn` wins; then the `--db-*-file` files, if the command line names one or the first of them exists; else the
embedded PostgreSQL. Reads the files, opens no connection.
"""

from dataclasses import replace
from pathlib import Path

from maestropy.flags import SettingsError
from maestropy.server.settings.model import ServerSettings
from maestropy.server.settings.operation import DatabaseSettings
from maestropy.store.dsn import Dsn


def locate(settings: ServerSettings) -> tuple[ServerSettings, Dsn | None]:
    """Return the settings with `auto_migrate` decided, and the database; None stands for the embedded one."""
    database = settings.database
    dsn = database.dsn
    if dsn is None and (database.files_are_given or database.host_file.exists()):
        dsn = _from_files(database)
    if database.auto_migrate is None:
        settings = replace(settings, database=replace(database, auto_migrate=dsn is None))
    return settings, dsn


def _from_files(database: DatabaseSettings) -> Dsn:
    port = _content("--db-port-file", database.port_file)
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise SettingsError(f"--db-port-file={database.port_file} holds no port; write a number into it")
    return Dsn(
        host=_content("--db-host-file", database.host_file),
        port=int(port),
        user=_content("--db-user-file", database.user_file),
        password=_content("--db-password-file", database.password_file),
        database=_content("--db-name-file", database.name_file),
        sslmode=database.sslmode,
        rootcert=_rootcert(database),
    )


def _rootcert(database: DatabaseSettings) -> Path | None:
    if database.sslmode == "disable":
        return None
    if database.rootcert.exists():
        return database.rootcert
    is_needed = database.sslmode != "require" or database.rootcert != DatabaseSettings().rootcert
    if is_needed:
        raise SettingsError(
            f"--db-rootcert={database.rootcert} does not exist; --db-sslmode={database.sslmode} needs the "
            "certificate of the authority that signed the database's"
        )
    return None


def _content(flag: str, path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(
            f"{flag}={path} cannot be read ({reason}); "
            "give the path of the file, or use --db-dsn, or leave all --db-*-file flags out"
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
