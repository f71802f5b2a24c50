"""Where a PostgreSQL is and who we are to it.

A `Dsn` is a value: it is read from a connection string or put together from its parts, and it gives the
driver its keyword arguments. It never pastes a password into a string; both its texts, `str` and `repr`, leave
the password out. It opens no connection, and what it does not understand it refuses instead of passing on.
"""

import shlex
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

DEFAULT_PORT = 5432
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

# libpq's name of a parameter → ours.
_PARAMETERS = {
    "host": "host",
    "port": "port",
    "user": "user",
    "password": "password",
    "dbname": "database",
    "database": "database",
    "sslmode": "sslmode",
    "sslrootcert": "rootcert",
}


class DsnError(ValueError):
    """A connection string that cannot be used. The message never quotes it, as it may hold a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsn:
    """The address of one database.

    A `host` that begins with `/` is the directory of a unix socket. Without a `password` the driver looks for
    one where PostgreSQL's own tools do: PGPASSWORD, then the password file.
    """

    host: str
    port: int = DEFAULT_PORT
    user: str
    password: str | None = field(default=None, repr=False)
    database: str
    sslmode: str = "prefer"
    rootcert: Path | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL (`postgresql://user@host/db`) or a list of words (`host=… dbname=…`)."""
        found = _from_url(text) if "://" in text else _from_words(text)
        return cls._from_parameters(found)

    @classmethod
    def _from_parameters(cls, found: Mapping[str, str]) -> Self:
        sslmode = found.get("sslmode", "prefer")
        if sslmode not in SSL_MODES:
            raise DsnError(f"has an sslmode that does not exist; use one of {', '.join(SSL_MODES)}")
        for name in ("host", "user"):
            if not found.get(name):
                raise DsnError(f"names no {name}; write postgresql://user@host:5432/database")
        return cls(
            host=found["host"],
            port=_port(found.get("port") or str(DEFAULT_PORT)),
            user=found["user"],
            password=found.get("password"),
            database=found.get("database") or found["user"],
            sslmode=sslmode,
            rootcert=Path(found["rootcert"]) if found.get("rootcert") else None,
        )

    def connect_kwargs(self) -> dict[str, object]:
        """Return the keyword arguments for `asyncpg.connect` and `asyncpg.create_pool`.

        Reads the root certificate, so it may raise `OSError`.
        """
        return {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "database": self.database,
            "ssl": self._ssl(),
        }

    def _ssl(self) -> ssl.SSLContext | str:
        verifies = self.sslmode in {"verify-ca", "verify-full"}
        # As in libpq, a root certificate turns `require` into `verify-ca`: nobody names one for nothing.
        if not verifies and not (self.sslmode == "require" and self.rootcert):
            return self.sslmode
        context = ssl.create_default_context(cafile=self.rootcert)
        context.check_hostname = self.sslmode == "verify-full"
        return context

    def __str__(self) -> str:
        """Return the address as a URL without the password; `parse` reads it back."""
        parameters = {"sslmode": self.sslmode}
        place = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        place += f":{self.port}"
        if self.host.startswith("/"):
            # A port without a host before it is read by libpq, and misread by asyncpg.
            place, parameters["host"], parameters["port"] = "", self.host, str(self.port)
        if self.rootcert:
            parameters["sslrootcert"] = str(self.rootcert)
        query = urlencode(parameters, quote_via=quote, safe="/")
        user, database = quote(self.user, safe=""), quote(self.database, safe="")
        return f"postgresql://{user}@{place}/{database}?{query}"


def _from_url(text: str) -> dict[str, str]:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        # Not chained: the parser's own message quotes the text, and with it a password.
        raise DsnError("is not a URL; write postgresql://user@host:5432/database") from None
    if url.scheme not in {"postgres", "postgresql"}:
        raise DsnError("does not begin with postgresql://")
    _refuse_several_hosts(url)
    found = {
        "host": unquote(url.hostname or ""),
        "port": str(port or ""),
        "user": unquote(url.username or ""),
        "database": unquote(url.path.removeprefix("/")),
    }
    if url.password is not None:
        found["password"] = unquote(url.password)
    return found | _named(dict(parse_qsl(url.query, keep_blank_values=True)))


def _refuse_several_hosts(url: SplitResult) -> None:
    if "," in url.netloc.rpartition("@")[2]:
        raise DsnError("names several hosts; give the one address that always leads to the primary")


def _from_words(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise DsnError("has a quotation mark without its partner") from error
    pairs = [word.partition("=") for word in words]
    if not pairs or not all(separator for _, separator, _ in pairs):
        raise DsnError("is neither a URL nor words such as host=…; write postgresql://user@host:5432/database")
    return _named({name: value for name, _, value in pairs})


def _named(given: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(given.keys() - _PARAMETERS.keys())
    if unknown:
        raise DsnError(f"has the parameter {unknown[0]}, which is not understood; remove it")
    return {_PARAMETERS[name]: value for name, value in given.items()}


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise DsnError("has a port that is not a number from 1 to 65535")
    return int(text)
