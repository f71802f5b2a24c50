"""Choose the database: `--db-dsn`, the `--db-*-file` files, or the embedded PostgreSQL.

The files are used if the command line names one or the first of them exists. The embedded PostgreSQL is used when the
command line asks for it, or for a server that only this host can reach: a deployment that lost its database setting
must not start with an empty database. Reads the files, opens no connection.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from maestropy.flags import SettingsError
from maestropy.server.settings.model import ServerSettings
from maestropy.server.settings.process import DatabaseSettings
from maestropy.store.dsn import Dsn, DsnError, parse_hosts


def locate(settings: ServerSettings) -> tuple[ServerSettings, Dsn | None]:
    """Return the settings with `auto_migrate` set, and the database; None means the embedded one."""
    database = settings.database
    dsn = database.dsn
    if dsn is None and (database.files_are_given or database.host_file.exists()):
        dsn = _from_files(database)
    _check_embedded(settings, is_needed=dsn is None)
    if database.auth_method == "az-entra":
        _check_entra(dsn, database.listen_dsn, database.read_dsn)
    if dsn is None and database.listen_dsn is not None:
        raise SettingsError(
            "--db-listen-dsn needs --db-dsn or the --db-*-file flags; the embedded PostgreSQL has no pooler"
        )
    if database.read_dsn is not None:
        _check_read_dsn(dsn, database.read_dsn)
    if database.auto_migrate is None:
        settings = replace(settings, database=replace(database, auto_migrate=dsn is None))
    return settings, dsn


def listening_address(settings: ServerSettings, dsn: Dsn) -> Dsn:
    """Return the address of the connection that listens for notifications; `dsn` is that of all others."""
    address = settings.database.listen_dsn
    return dsn if address is None else _with_password_of(dsn, address)


def reading_address(settings: ServerSettings, dsn: Dsn) -> Dsn | None:
    """Return the address of the read replica; `dsn` is that of the primary. None: there is no replica."""
    address = settings.database.read_dsn
    return None if address is None else _with_password_of(dsn, address)


def _with_password_of(dsn: Dsn, address: Dsn) -> Dsn:
    if address.password is None and address.user == dsn.user:
        return replace(address, password=dsn.password, password_source=dsn.password_source)
    return address


def _check_read_dsn(dsn: Dsn | None, read_dsn: Dsn) -> None:
    if dsn is None:
        raise SettingsError(
            "--db-read-dsn needs --db-dsn or the --db-*-file flags; the embedded PostgreSQL has no replica"
        )
    if read_dsn.target_session_attrs is not None:
        raise SettingsError(
            "--db-read-dsn has target_session_attrs; leave it out: of its hosts the first standby is used"
        )
    if set(read_dsn.hosts) == set(dsn.hosts) and len(dsn.hosts) == 1:
        raise SettingsError(
            "--db-read-dsn is the address of --db-dsn; give the address of a streaming replica, or leave it out"
        )


def _check_embedded(settings: ServerSettings, *, is_needed: bool) -> None:
    database = settings.database
    if database.embedded and not is_needed:
        raise SettingsError(
            "--embedded-database contradicts the other database settings; leave it out, or leave out --db-dsn, "
            "MAESTRO_DB_DSN and the --db-*-file flags"
        )
    if is_needed and not (database.embedded or database.data_dir_is_given or settings.is_loopback_only):
        raise SettingsError(
            "no database is set, and other hosts can reach this server; give --db-dsn, MAESTRO_DB_DSN or the "
            "--db-*-file flags, or ask for the embedded PostgreSQL with --embedded-database or --data-dir"
        )


def _check_entra(dsn: Dsn | None, *others: Dsn | None) -> None:
    if dsn is None:
        raise SettingsError(
            "--db-auth-method=az-entra needs the address of Azure's PostgreSQL: --db-dsn, MAESTRO_DB_DSN or the "
            "--db-*-file flags"
        )
    for address in (dsn, *others):
        if address is not None and address.sslmode in ("disable", "allow", "prefer"):
            raise SettingsError(
                f"--db-auth-method=az-entra would send its token to {address.host} without TLS; use sslmode=require "
                "(--db-sslmode=require with the --db-*-file flags), verify-ca or verify-full"
            )


def _from_files(database: DatabaseSettings) -> Dsn:
    names, ports = (
        _content("--db-host-file", database.host_file),
        _content("--db-port-file", database.port_file),
    )
    if not all(port.isascii() and port.isdigit() and 0 < int(port) < 65536 for port in ports.split(",")):
        raise SettingsError(
            f"--db-port-file={database.port_file} holds no port; write a number into it, or one for each host with "
            "commas between them"
        )
    try:
        first, *others = parse_hosts(names, ports)
    except DsnError as error:
        raise SettingsError(f"--db-host-file={database.host_file} {error}") from error
    password = _password(database)
    return Dsn(
        host=first.name,
        port=first.port,
        other_hosts=tuple(others),
        user=_content("--db-user-file", database.user_file),
        password=password,
        password_source=None if password is None else _reread(database.password_file, at_start=password),
        database=_content("--db-name-file", database.name_file),
        sslmode=database.sslmode,
        rootcert=_rootcert(database),
    )


def _password(database: DatabaseSettings) -> str | None:
    if database.auth_method == "az-entra":
        return None
    return _content("--db-password-file", database.password_file)


def _reread(file: Path, *, at_start: str) -> Callable[[], Awaitable[str]]:
    """Return how each new connection gets its password: a rotated one counts without a restart."""

    async def password() -> str:
        try:
            return _content("--db-password-file", file)
        except SettingsError:
            return at_start  # a file that is being replaced; PostgreSQL judges the password

    return password


def _rootcert(database: DatabaseSettings) -> Path | None:
    if database.sslmode == "disable" or database.rootcert is None:
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
