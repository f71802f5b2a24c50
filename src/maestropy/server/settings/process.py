"""Settings of event delivery, database, instance and logging.

One documented field per flag: unit, reason, and the meaning of absence. Values only; `load` builds and checks them.
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
    """How instances share the status updates of a message broker. `shared`: the broker sends each update to one
    instance; write `$share/<group>/` before topics.agentEvents. `broadcast`: every instance gets all updates and
    handles those of the consumers that it owns by the hash ring. No effect for grpc."""

    partition_count: int = field(default=7, metadata=flag("--consistent-hash-partition-count"))
    """Partitions of the hash ring that distributes consumers over instances; broadcast only."""

    replication_factor: int = field(default=20, metadata=flag("--consistent-hash-replication-factor"))
    """Points of each instance on the hash ring; broadcast only."""

    load: float = field(default=1.25, metadata=flag("--consistent-hash-load"))
    """Maximum load of an instance relative to the mean; broadcast only."""

    undelivered_threshold: int = field(default=600, metadata=flag("--undelivered-resource-threshold"))
    """Seconds after which a resource without a status is sent again. 0: never."""

    stale_delete_threshold: int = field(default=3600, metadata=flag("--stale-delete-event-threshold"))
    """Seconds after which pending delete events of a deleting resource are retired. 0: never."""

    delete_republish_interval: int = field(default=60, metadata=flag("--delete-event-republish-interval"))
    """Seconds after which a deletion that no agent has confirmed is sent again; the delay then doubles. 0: this server
    sends none again, which leaves first delete requests as they are."""

    delete_republish_max_interval: int = field(default=3600, metadata=flag("--delete-event-republish-max-interval"))
    """Longest delay in seconds between two deliveries of an unconfirmed deletion; not a limit of its age."""

    delete_republish_batch_size: int = field(default=25, metadata=flag("--delete-event-republish-batch-size"))
    """Most deletions that all servers of a database send again in a round, from 1 to 1000; rounds are at least a second
    apart. A large fleet needs more: 1000 send 200,000 deletions in less than ten minutes."""

    sweep_interval: timedelta = field(default=timedelta(seconds=2), metadata=flag("--sweep-interval"))
    """Time between rescans for events whose notification was lost: the longest delay of such an event."""

    event_retention: timedelta = field(default=timedelta(), metadata=flag("--event-retention"))
    """How long a reconciled event stays in its table. 0s: until the next purge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """History"""

    enabled: bool = field(default=True, metadata=flag("--enable-history"))
    """Record in the database who changed what, and when: spec changes, status transitions, connects of agents, actions
    of operators and refused requests. false: nothing is recorded; what was recorded before stays readable until it
    expires on a server that records."""

    retention: timedelta = field(default=timedelta(days=30), metadata=flag("--history-retention"))
    """How long the history is kept. Whole partitions are dropped, so the oldest entries are up to a day older."""

    max_megabytes: int = field(default=1024, metadata=flag("--history-max-megabytes"))
    """Room in megabytes that the history may take in the database, with its indexes; the oldest partitions are dropped
    first. At twice this size the partition that is being written is emptied too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSettings:
    """Database"""

    dsn: Dsn | None = field(default=None, metadata=flag("--db-dsn", read=Dsn.parse))
    """Address of the PostgreSQL, such as postgresql://user@host:5432/maestro. Several hosts (host1:5432,host2:5432) are
    tried in turn until one takes writes; target_session_attrs may be read-write, primary or any. Also read from
    MAESTRO_DB_DSN, the better place for a password. Absent: the --db-*-file files; without those see
    --embedded-database."""

    listen_dsn: Dsn | None = field(default=None, metadata=flag("--db-listen-dsn", read=Dsn.parse))
    """Address of PostgreSQL itself for the one connection that listens for notifications, when the other connections
    pass through a connection pooler in transaction mode, such as PgBouncer. It may leave the password out if the user
    is the same. Also read from MAESTRO_DB_LISTEN_DSN. Absent: the same address as for all connections."""

    read_dsn: Dsn | None = field(default=None, metadata=flag("--db-read-dsn", read=Dsn.parse))
    """Address of a streaming replica of the PostgreSQL, from which lists and searches of the REST API are read while it
    is new enough; everything else uses the primary. It may leave the password out if the user is the same. Also read
    from MAESTRO_DB_READ_DSN. Absent: everything is read from the primary."""

    read_max_lag: timedelta = field(default=timedelta(seconds=5), metadata=flag("--db-read-max-lag"))
    """How old the data of the replica may be; older than that, lists are read from the primary. A list of a client that
    sends no position is never older than its request."""

    read_wait: timedelta = field(default=timedelta(milliseconds=200), metadata=flag("--db-read-wait"))
    """How long a list waits for a replica that is a little behind what the client has to see, before the primary
    answers."""

    read_max_open_connections: int = field(default=20, metadata=flag("--db-read-max-open-connections"))
    """Maximum number of connections of one instance to the replica."""

    embedded: bool = field(default=False, metadata=flag("--embedded-database"))
    """Use the embedded PostgreSQL. It is also used with --data-dir, and without any database setting while every
    listener is on a loopback address. Otherwise a server without a database setting does not start: agents would
    meet an empty database."""

    data_dir: Path = field(default=Path("maestropy"), metadata=flag("--data-dir"))
    """Directory of the embedded PostgreSQL; giving it chooses the embedded PostgreSQL. Default:
    $XDG_DATA_HOME/maestropy, or ~/.local/share/maestropy."""

    auto_migrate: bool | None = field(default=None, metadata=flag("--auto-migrate"))
    """Migrate the schema at start. Default: only for the embedded database; for all others run `maestro migration`
    first."""

    host_file: Path = field(default=Path("secrets/db.host"), metadata=flag("--db-host-file"))
    """File with the host of the PostgreSQL, or several with commas between them: the one that takes writes is used.
    The --db-*-file files are used if one is given or this one exists."""

    port_file: Path = field(default=Path("secrets/db.port"), metadata=flag("--db-port-file"))
    """File with the port of the PostgreSQL, or one for each host with commas between them."""

    user_file: Path = field(default=Path("secrets/db.user"), metadata=flag("--db-user-file"))
    """File with the user name."""

    password_file: Path = field(default=Path("secrets/db.password"), metadata=flag("--db-password-file"))
    """File with the password."""

    name_file: Path = field(default=Path("secrets/db.name"), metadata=flag("--db-name-file"))
    """File with the name of the database."""

    rootcert: Path | None = field(default=Path("secrets/db.rootcert"), metadata=flag("--db-rootcert"))
    """PEM file with the CAs of the PostgreSQL certificate; used with --db-sslmode other than disable. Empty: the CAs
    of the system for verify-ca and verify-full, and no check for require."""

    sslmode: Literal["disable", "require", "verify-ca", "verify-full"] = field(
        default="disable", metadata=flag("--db-sslmode")
    )
    """TLS mode for the PostgreSQL of the --db-*-file files. A --db-dsn has its own sslmode."""

    max_open_connections: int = field(default=50, metadata=flag("--db-max-open-connections"))
    """Maximum number of database connections of one instance."""

    debug: bool = field(default=False, metadata=flag("--enable-db-debug"))
    """Log every SQL statement, without its values."""

    auth_method: Literal["password", "az-entra"] = field(default="password", metadata=flag("--db-auth-method"))
    """How to log in to the PostgreSQL. `az-entra`: with a token of Microsoft Entra in place of the password, for
    Azure's PostgreSQL; the identity is found as in every Azure SDK, in a pod by workload identity. It needs TLS
    (--db-sslmode=require) and the extra `azure`; --db-password-file is not read."""

    token_request_scope: str = field(
        default="https://ossrdbms-aad.database.windows.net/.default", metadata=flag("--db-token-request-scope")
    )
    """Scope of the token request of az-entra."""

    files_are_given: bool = False
    """Whether the command line has one of the --db-*-file flags: then a missing file is an error. No flag."""

    data_dir_is_given: bool = False
    """Whether the command line has --data-dir. No flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceSettings:
    """Instance"""

    source_id: str = field(default="maestro", metadata=flag("--source-id"))
    """CloudEvents source of this server. All agents of a deployment must use the same."""

    client_id: str = field(default="maestro", metadata=flag("--client-id"))
    """Name of this instance; it must be unique among the instances of a database."""

    workers: int = field(default=1, metadata=flag("--workers"))
    """Number of server processes on this host; they share the ports and use several cores."""

    worker_index: int | None = field(default=None, metadata=flag("--worker-index", hidden=True))
    """Index of this worker process, set by its supervisor. Absent: not a worker."""

    @property
    def instance_id(self) -> str:
        """ID of this process in the table `server_instances`."""
        return f"{self.client_id}-w{self.worker_index}" if self.worker_index else self.client_id

    @property
    def shares_ports(self) -> bool:
        """Whether other processes of this host listen on the same ports."""
        return self.workers > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Logging"""

    verbosity: int = field(default=2, metadata=flag("-v"))
    """Log verbosity as in klog. Default 2: requests can be traced, no payloads; whole events from 4 on. MAESTRO_ENV
    sets other defaults: development 10, testing 0, production 1."""

    format: Literal["klog", "json"] = field(default="klog", metadata=flag("--log-format"))
    """Log format. `klog`: the format of Go Maestro, for its dashboards and runbooks; `json`: one object per line."""
