"""What ARO HCP's Maestro has around it: a PostgreSQL that takes tokens, and a broker with Event Grid's limits."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from tests.certificates import Authority, CertFiles
from tests.peers.mosquitto import Mosquitto, mosquitto
from tests.peers.postgres import postgres_servers
from tests.peers.postgres.postgres_servers import DATABASE, PostgresServer

USER = "maestro-server"
SERVER_NAME = "maestro-server-testregion"
"""The authentication name of the server at the broker."""

# docs/aro-hcp.md explains the numbers.
EVENT_GRID = """\
require_certificate true
use_identity_as_username true
allow_anonymous false
max_packet_size 524288
max_qos 1
max_keepalive 1160
retain_available false
max_queued_messages 100
persistent_client_expiration 1h
"""
ACCESS = """\
user {server}
topic write sources/maestro/consumers/+/sourceevents
topic read sources/maestro/consumers/+/agentevents
pattern write sources/maestro/consumers/%u/agentevents
pattern read sources/maestro/consumers/%u/sourceevents
"""


@contextlib.contextmanager
def entra_postgres() -> Iterator[PostgresServer]:
    """Run a PostgreSQL that checks the password of its user; `set_password` changes it."""
    with postgres_servers.installation() as installed, postgres_servers.single(installed) as server:
        rules = f'host all postgres 127.0.0.1/32 trust\nhost all "{USER}" 127.0.0.1/32 scram-sha-256\n'
        (server.data / "pg_hba.conf").write_text(rules)
        server.sql(f'CREATE ROLE "{USER}" LOGIN')
        server.sql(f'ALTER DATABASE {DATABASE} OWNER TO "{USER}"')
        server.sql("SELECT pg_reload_conf()")
        yield server


def set_password(server: PostgresServer, token: str) -> None:
    """Let the user log in with this token and with no other."""
    server.sql(f"ALTER ROLE \"{USER}\" PASSWORD '{token}'")


def backends(server: PostgresServer) -> set[str]:
    """Return the process IDs of the user's connections."""
    return set(server.sql(f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}'").split())


@contextlib.contextmanager
def event_grid(folder: Path, authority: Authority) -> Iterator[Mosquitto]:
    """Run a broker with the limits and permissions of ARO HCP's Event Grid namespace."""
    folder.mkdir(parents=True)
    files = authority.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    access = folder / "access"
    access.write_text(ACCESS.format(server=SERVER_NAME))
    tls = f"cafile {authority.cert}\ncertfile {files.cert}\nkeyfile {files.key}\nacl_file {access}\n"
    with mosquitto(folder, settings=tls + EVENT_GRID) as broker:
        yield broker


def write_secrets(secrets: Path, *, database_port: int, broker: Mosquitto, files: CertFiles, topic: str) -> None:
    """Write the secrets of one deployment as the charts mount them; `topic` is the consumer's part of the topics."""
    contents = {"host": "127.0.0.1", "port": str(database_port), "user": USER, "password": "", "name": DATABASE}
    for name, content in contents.items():
        path = secrets / "db" / f"db.{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    credentials = secrets / "mqtt-creds"
    credentials.mkdir()
    shutil.copy(files.cert, credentials / "maestro.crt")
    shutil.copy(files.key, credentials / "maestro.key")
    (secrets / "maestro").mkdir()
    (secrets / "maestro" / "config.yaml").write_text(
        f'brokerHost: "localhost:{broker.port}"\nusername: ""\npassword: ""\n'
        f"clientCertFile: {credentials}/maestro.crt\nclientKeyFile: {credentials}/maestro.key\n"
        f"topics:\n  sourceEvents: sources/maestro/consumers/{topic}/sourceevents\n"
        f"  agentEvents: sources/maestro/consumers/{topic}/agentevents\n"
    )
