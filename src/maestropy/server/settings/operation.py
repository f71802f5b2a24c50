"""The settings of what the server does with events, where it keeps them and how it tells about it.

One documented field per flag: unit, reason, and what absence means. Values only; `load` makes and checks them.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from maestropy.flags import flag
from maestropy.store.dsn import Dsn


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """Delivery"""

    subscription_type: Literal["shared", "broadcast"] = field(default="shared", metadata=flag("--subscription-type"))
    """How instances share status events of an outside broker. `shared`: each takes what it gets; write
    `$share/<group>/` before topics.agentEvents, and the broker gives each event to one of them. `broadcast`: each gets
    everything and takes what concerns the consumers that the hash ring gives it. Without effect for grpc."""

    partition_count: int = field(default=7, metadata=flag("--consistent-hash-partition-count"))
    """Partitions of the hash ring that spreads consumers over instances; broadcast only."""

    replication_factor: int = field(default=20, metadata=flag("--consistent-hash-replication-factor"))
    """Points of each instance on the hash ring; broadcast only."""

    load: float = field(default=1.25, metadata=flag("--consistent-hash-load"))
    """How far above the mean an instance may be loaded; broadcast only."""

    undelivered_threshold: int = field(default=600, metadata=flag("--undelivered-resource-threshold"))
    """Seconds after which a bundle without any status is sent again. 0: never."""

    stale_delete_threshold: int = field(default=3600, metadata=flag("--stale-delete-event-threshold"))
    """Seconds after which the pending delete events of a bundle being deleted are given up. 0: never."""

    sweep_interval: timedelta = field(default=timedelta(seconds=2), metadata=flag("--sweep-interval"))
    """Time between looks for events whose wake-up was lost: the longest such an event can wait."""

    event_retention: timedelta = field(default=timedelta(), metadata=flag("--event-retention"))
    """How long a finished event stays in its table. 0s: until the next sweep; keep longer to study deliveries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Database"""

    dsn: Dsn | None = field(default=None, metadata=flag("--db-dsn", read=Dsn.parse))
    """Address of the PostgreSQL, such as postgresql://user@host:5432/maestro. Also read from MAESTRO_DB_DSN, the
    better place for a password. Absent: the --db-*-file files; without those the embedded PostgreSQL."""

    data_dir: Path = field(default=Path("maestropy"), metadata=flag("--data-dir"))
    """Directory of the embedded PostgreSQL. Default: $XDG_DATA_HOME/maestropy, or ~/.local/share/maestropy."""

    auto_migrate: bool | None = field(default=None, metadata=flag("--auto-migrate"))
    """Bring the schema up to date at start. Default: only for the embedded database; for all others run
    `maestro migration` first."""

    host_file: Path = field(default=Path("secrets/db.host"), metadata=flag("--db-host-file"))
    """File with the host of the PostgreSQL. The --db-*-file files count when one of them is given or this one
    exists."""

    port_file: Path = field(default=Path("secrets/db.port"), metadata=flag("--db-port-file"))
    """File with the port of the PostgreSQL."""

    user_file: Path = field(default=Path("secrets/db.user"), metadata=flag("--db-user-file"))
    """File with the user name."""

    password_file: Path = field(default=Path("secrets/db.password"), metadata=flag("--db-password-file"))
    """File with the password."""

    name_file: Path = field(default=Path("secrets/db.name"), metadata=flag("--db-name-file"))
    """File with the name of the database."""

    rootcert: Path = field(default=Path("secrets/db.rootcert"), metadata=flag("--db-rootcert"))
    """PEM authorities that sign the certificate of the PostgreSQL; used with --db-sslmode other than disable."""

    sslmode: Literal["disable", "require", "verify-ca", "verify-full"] = field(
        default="disable", metadata=flag("--db-sslmode")
    )
    """TLS towards the PostgreSQL of the --db-*-file files. A --db-dsn carries its own sslmode."""

    max_open_connections: int = field(default=50, metadata=flag("--db-max-open-connections"))
    """Most connections one instance opens."""

    debug: bool = field(default=False, metadata=flag("--enable-db-debug"))
    """Log every SQL statement, without its values."""

    auth_method: Literal["password", "az-entra"] = field(default="password", metadata=flag("--db-auth-method"))
    """How to log in to the PostgreSQL. az-entra (Azure tokens) is not in this version yet."""

    token_request_scope: str = field(
        default="https://ossrdbms-aad.database.windows.net/.default", metadata=flag("--db-token-request-scope")
    )
    """Scope of the token that az-entra asks for."""

    files_are_given: bool = False
    """Whether the command line names one of the --db-*-file files: then a missing one is an error. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """Instance"""

    source_id: str = field(default="maestro", metadata=flag("--source-id"))
    """The name under which this server is a source for agents. Agents of one deployment must all know it."""

    client_id: str = field(default="maestro", metadata=flag("--client-id"))
    """The name of this instance; no two instances on one database may share it."""

    workers: int = field(default=1, metadata=flag("--workers"))
    """Server processes on this host, which share the ports. More than one use more than one core."""

    worker_index: int | None = field(default=None, metadata=flag("--worker-index", hidden=True))
    """Which of the workers this process is; set by the process that started it. Absent: it is none."""

    @property
    def instance_id(self) -> str:
        """The id of this process in the table of instances."""
        return f"{self.client_id}-w{self.worker_index}" if self.worker_index else self.client_id

    @property
    def shares_ports(self) -> bool:
        """Whether other processes of this host listen on the same ports."""
        return self.workers > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Logging"""

    verbosity: int = field(default=2, metadata=flag("-v"))
    """How much to log, as klog counts. Default 2: the lines a request can be traced by, no payloads; whole events
    begin at 4. MAESTRO_ENV sets other defaults: development 10, testing 0, production 1."""

    format: Literal["klog", "json"] = field(default="klog", metadata=flag("--log-format"))
    """`klog` is what Maestro's dashboards and runbooks read; `json` is one object per line."""
