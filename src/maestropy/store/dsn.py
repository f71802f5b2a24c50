"""Parse PostgreSQL connection strings into a `Dsn` value without leaking the password.

A `Dsn` is parsed from a connection string or built from fields, and gives the driver its keyword arguments. It may name
several hosts, as in libpq. `str` and `repr` leave the password out. It opens no connection and rejects parameters that
it does not support.
"""

import re
import shlex
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

DEFAULT_PORT = 5432
MAX_HOSTS = 16
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SESSION_TARGETS = ("any", "primary", "read-write")
"""Values of target_session_attrs for a server, which always writes. The others of libpq choose a standby."""

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
    "target_session_attrs": "target_session_attrs",
}


class DsnError(ValueError):
    """A connection string that cannot be used. The message never quotes it, as it may hold a password."""


class Host(NamedTuple):
    """One PostgreSQL server; a `name` that begins with `/` is the directory of a unix socket."""

    name: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dsn:
    """The address of one database.

    A `host` that begins with `/` is the directory of a unix socket. `other_hosts` are further servers that may have the
    primary of the same database. Without a `password` the driver looks for one where PostgreSQL's own tools do:
    PGPASSWORD, then the password file.
    """

    host: str
    port: int = DEFAULT_PORT
    user: str
    password: str | None = field(default=None, repr=False)
    database: str
    sslmode: str = "prefer"
    rootcert: Path | None = None
    other_hosts: tuple[Host, ...] = ()
    target_session_attrs: str | None = None
    password_source: Callable[[], Awaitable[str]] | None = field(default=None, repr=False, compare=False)
    """Returns the password of each new connection, where it changes with time; it takes the place of `password`."""

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All hosts, in the order in which they are tried."""
        return (Host(self.host, self.port), *self.other_hosts)

    @property
    def needs_writable_host(self) -> bool:
        """Whether a host that takes no writes is passed over: with target_session_attrs, and among several hosts."""
        return (self.target_session_attrs or ("read-write" if self.other_hosts else "any")) == "read-write"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a URL (`postgresql://user@host/db`) or key=value pairs (`host=… dbname=…`); `a,b` are two hosts."""
        parameters = _from_url(text) if "://" in text else _from_pairs(text)
        return cls._from_parameters(parameters)

    @classmethod
    def _from_parameters(cls, parameters: Mapping[str, str]) -> Self:
        sslmode = parameters.get("sslmode", "prefer")
        if sslmode not in SSL_MODES:
            raise DsnError(f"has an sslmode that does not exist; use one of {', '.join(SSL_MODES)}")
        target = parameters.get("target_session_attrs")
        if target is not None and target not in SESSION_TARGETS:
            raise DsnError(
                f"has a target_session_attrs that a server cannot use, because it writes; use one of "
                f"{', '.join(SESSION_TARGETS)}"
            )
        for name in ("host", "user"):
            if not parameters.get(name):
                raise DsnError(f"names no {name}; write postgresql://user@host:5432/database")
        first, *others = parse_hosts(parameters["host"], parameters.get("port", ""))
        return cls(
            host=first.name,
            port=first.port,
            other_hosts=tuple(others),
            target_session_attrs=target,
            user=parameters["user"],
            password=parameters.get("password"),
            database=parameters.get("database") or parameters["user"],
            sslmode=sslmode,
            rootcert=Path(parameters["rootcert"]) if parameters.get("rootcert") else None,
        )

    def connect_kwargs(self, host: Host | None = None) -> dict[str, object]:
        """Return the keyword arguments for `asyncpg.connect` to one of the hosts, or else to the first.

        Reads the root certificate, so it may raise `OSError`.
        """
        name, port = host or self.hosts[0]
        return {
            "host": name,
            "port": port,
            "user": self.user,
            "password": self.password_source or self.password,
            "database": self.database,
            "ssl": self._ssl(),
        }

    def _ssl(self) -> ssl.SSLContext | str:
        verifies = self.sslmode in {"verify-ca", "verify-full"}
        # As in libpq, a root certificate turns `require` into `verify-ca`: a root certificate is only given to be used.
        if not verifies and not (self.sslmode == "require" and self.rootcert):
            return self.sslmode
        context = ssl.create_default_context(cafile=self.rootcert)
        context.check_hostname = self.sslmode == "verify-full"
        return context

    def __str__(self) -> str:
        """Return the address as a URL without the password; `parse` reads it back."""
        parameters = {"sslmode": self.sslmode}
        address = ",".join(_url_address(host) for host in self.hosts)
        if any(host.name.startswith("/") for host in self.hosts):
            # A port without a host before it is read by libpq, and misread by asyncpg.
            address = ""
            parameters["host"] = ",".join(host.name for host in self.hosts)
            parameters["port"] = ",".join(str(host.port) for host in self.hosts)
        if self.target_session_attrs:
            parameters["target_session_attrs"] = self.target_session_attrs
        if self.rootcert:
            parameters["sslrootcert"] = str(self.rootcert)
        query = urlencode(parameters, quote_via=quote, safe="/")
        user, database = quote(self.user, safe=""), quote(self.database, safe="")
        return f"postgresql://{user}@{address}/{database}?{query}"


def parse_hosts(names: str, ports: str) -> list[Host]:
    """Return the hosts of two lists with commas: one port for all hosts, or one for each; none means 5432."""
    host_names, port_texts = names.split(","), ports.split(",")
    if len(port_texts) == 1:
        port_texts *= len(host_names)
    if len(host_names) != len(port_texts):
        raise DsnError(
            f"names {len(host_names)} hosts and {len(port_texts)} ports; give one port, or one for each host"
        )
    if not all(host_names):
        raise DsnError("has an empty host; write host1,host2 without further commas")
    if len(host_names) > MAX_HOSTS:
        raise DsnError(f"names {len(host_names)} hosts; {MAX_HOSTS} are possible")
    return [Host(name, _port(text or str(DEFAULT_PORT))) for name, text in zip(host_names, port_texts, strict=True)]


def _url_address(host: Host) -> str:
    return f"{f'[{host.name}]' if ':' in host.name else quote(host.name, safe='')}:{host.port}"


def _from_url(text: str) -> dict[str, str]:
    scheme, _, rest = text.partition("://")
    if scheme not in {"postgres", "postgresql"}:
        raise DsnError("does not begin with postgresql://")
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    url = urlsplit(f"postgresql://host{rest[len(authority) :]}")
    credentials, _, addresses = authority.rpartition("@")
    user, colon, password = credentials.partition(":")
    pairs = [_split_port(address) for address in addresses.split(",")]
    parameters = {
        "host": ",".join(unquote(name) for name, _ in pairs),
        "port": ",".join(port for _, port in pairs),
        "user": unquote(user),
        "database": unquote(url.path.removeprefix("/")),
    }
    if colon:
        parameters["password"] = unquote(password)
    return parameters | _named(dict(parse_qsl(url.query, keep_blank_values=True)))


def _split_port(address: str) -> tuple[str, str]:
    """Split `host:port` or `[address]:port`; not chained and not quoted: what is wrong may be part of a password."""
    match = re.fullmatch(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::([0-9]*))?", address)
    if match is None:
        raise DsnError("is not a URL; write postgresql://user@host:5432/database")
    return match[1] or match[2] or "", match[3] or ""


def _from_pairs(text: str) -> dict[str, str]:
    try:
        items = shlex.split(text)
    except ValueError as error:
        raise DsnError("has an unmatched quotation mark") from error
    pairs = [item.partition("=") for item in items]
    if not pairs or not all(separator for _, separator, _ in pairs):
        raise DsnError(
            "is neither a URL nor key=value pairs such as host=…; write postgresql://user@host:5432/database"
        )
    return _named({name: value for name, _, value in pairs})


def _named(parameters: Mapping[str, str]) -> dict[str, str]:
    unknown = sorted(parameters.keys() - _PARAMETERS.keys())
    if unknown:
        raise DsnError(f"has the parameter {unknown[0]}, which is not understood; remove it")
    return {_PARAMETERS[name]: value for name, value in parameters.items()}


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise DsnError("has a port that is not a number from 1 to 65535")
    return int(text)
