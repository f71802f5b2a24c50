"""Run an embedded PostgreSQL: a server needs nothing but a data directory.

Only the programs come from the wheel. We run them ourselves, because the Python code of the wheel opens directories to
all users and creates users when it runs as root. PostgreSQL survives when our process is killed; the next process
finds it and uses it. A file lock, which the kernel releases, allows one process per directory.

PostgreSQL listens only on a unix socket in a private directory, so it needs no password.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from maestropy.aio import backoff, tasks
from maestropy.sandbox import os_account as accounts
from maestropy.sandbox import postgres_template, postmaster
from maestropy.sandbox.directory_lock import DirectoryLock
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.postgres_programs import Interruption, Programs
from maestropy.store.dsn import Dsn

USER = "maestro"
DATABASE = "postgres"

# Crash recovery reads at most max_wal_size, which takes much less than a minute.
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 30
# Time until a PostgreSQL that another process started must listen.
LISTEN_TIMEOUT_SECONDS = 3
_POLL_SECONDS = 0.02
_RETRY_SECONDS = 0.25
_CHECK_SECONDS = 1.0
# After this time without a restart the backoff starts from the beginning.
_BACKOFF_RESET_SECONDS = 60.0

# Beyond PostgreSQL's defaults, which keep every commit safe: fsync and synchronous_commit stay on.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    # Fewer checkpoints under load: after each one, the first write to a page logs the whole page.
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    # No replication, so the WAL needs only what crash recovery reads.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # Our statements are short; JIT compilation costs more than it saves.
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}

# For data that may be lost when the computer crashes. A kill -9 of PostgreSQL alone loses nothing.
EPHEMERAL_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

INITDB_OPTIONS = (
    f"--username={USER}",
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",
    # Order by code point, which is the same on every system: an index stays valid after a move.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)


class EmbeddedPostgres:
    """`async with EmbeddedPostgres(data_dir) as dsn:` runs a PostgreSQL whose data stays in `data_dir`.

    If PostgreSQL ends unexpectedly, it is restarted at the same address, and `report` is called.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        max_connections: int = 200,
        is_ephemeral: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._cluster = PostgresCluster(data_dir, max_connections=max_connections, is_ephemeral=is_ephemeral)
        self._report = report
        self._task_owner = tasks.TaskOwner()

    async def __aenter__(self) -> Dsn:
        # In a thread, because not every event loop can start a process under another user ID.
        starting = asyncio.get_running_loop().run_in_executor(None, self._cluster.start)
        try:
            address = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._cluster.interrupt_creation()
            with contextlib.suppress(SandboxError):
                await starting
            await asyncio.to_thread(self._cluster.stop)
            raise
        self._task_owner.start("embedded postgres", self._supervise())
        return address

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._task_owner.stop()
        await asyncio.to_thread(self._cluster.stop)

    async def _supervise(self) -> None:
        delays = self._delays()
        running_since = time.monotonic()
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            try:
                was_restarted = await self._restart_if_ended()
            except SandboxError as error:
                self._report(str(error))
            else:
                if not was_restarted:
                    if time.monotonic() - running_since > _BACKOFF_RESET_SECONDS:
                        delays = self._delays()
                    continue
                self._report("the embedded database ended unexpectedly and was restarted")
            await asyncio.sleep(next(delays))
            running_since = time.monotonic()

    async def _restart_if_ended(self) -> bool:
        # A start that has begun is awaited even when cancelled, so that `stop` finds what was started.
        restarting = asyncio.get_running_loop().run_in_executor(None, self._cluster.restart_if_ended)
        try:
            return await asyncio.shield(restarting)
        except asyncio.CancelledError:
            await asyncio.wait([restarting])
            raise

    def _delays(self) -> Iterator[float]:
        return backoff.delays(base=0.5, factor=2, cap=10.0)


class PostgresCluster:
    """The PostgreSQL database cluster of one directory. Blocking; `EmbeddedPostgres` is for event loops.

    An ephemeral one starts and writes faster, and may lose its data when the computer crashes.
    """

    def __init__(self, data_dir: Path, *, max_connections: int, is_ephemeral: bool = False) -> None:
        self._home = data_dir.absolute()
        self._data = self._home / "postgres"
        self._log = self._data / "server.log"
        self._settings = {
            **SETTINGS,
            **(EPHEMERAL_SETTINGS if is_ephemeral else {}),
            "max_connections": str(max_connections),
        }
        self._is_ephemeral = is_ephemeral
        self._lock: DirectoryLock | None = None
        self._sockets: Path | None = None
        self._interruption = Interruption()

    def interrupt_creation(self) -> None:
        """End the creation of the database, which takes longest; `start` then raises. From any thread.

        PostgreSQL that is being started is not interrupted: `stop` could not find it.
        """
        self._interruption.request()

    def start(self) -> Dsn:
        """Create the database if it does not exist, start it if it does not run, and return its address."""
        try:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = DirectoryLock.take(self._home)
        except OSError as error:
            raise SandboxError(
                f"--data-dir={self._home} cannot be used ({error.strerror}); use a directory you can write to"
            ) from error
        try:
            if not (self._data / "PG_VERSION").exists():
                self._create()
            self._sockets = self._run()
            return Dsn(host=str(self._sockets), user=USER, database=DATABASE, sslmode="disable")
        except BaseException:
            self._lock.release()
            self._lock = None
            raise

    def restart_if_ended(self) -> bool:
        """Restart PostgreSQL at the same address if it has ended; return whether it was restarted."""
        recorded = postmaster.recorded(self._data)
        if self._sockets is None or (recorded is not None and postmaster.may_be_starting(recorded.pid)):
            return False
        if recorded is not None:
            self._clean_up(recorded)
        shutil.rmtree(self._sockets, ignore_errors=True)
        try:
            accounts.make_private(self._sockets, accounts.choose(self._data))
        except OSError as error:
            raise SandboxError(f"The embedded database cannot be restarted: {error}") from error
        return self._launch(runtime=self._sockets)

    def stop(self) -> None:
        """Stop PostgreSQL and close its connections without data loss; then release the directory."""
        if self._lock is None:
            return
        try:
            running = postmaster.recorded(self._data)
            if running and postmaster.is_listening(running):
                self._end(running)
        finally:
            self._lock.release()
            self._lock = None

    def _end(self, running: postmaster.Postmaster) -> None:
        # SIGINT is PostgreSQL's fast shutdown; SIGQUIT is the immediate one, and the next start recovers.
        for signal_, seconds in ((signal.SIGINT, STOP_TIMEOUT_SECONDS), (signal.SIGQUIT, 5)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, signal_)
            for _ in range(int(seconds / _POLL_SECONDS)):
                if postmaster.recorded(self._data) is None:
                    _remove_runtime(running)
                    return
                time.sleep(_POLL_SECONDS)

    def _create(self) -> None:
        # Created under another name and renamed when complete, so an incomplete one is never used.
        unfinished = self._home / "postgres.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)

        def initdb(directory: Path) -> None:
            _initdb(directory, interruption=self._interruption)

        if not (self._is_ephemeral and _copy_template(unfinished, initdb=initdb)):
            shutil.rmtree(unfinished, ignore_errors=True)
            initdb(unfinished)
        unfinished.rename(self._data)

    def _run(self) -> Path:
        listen_attempts = int(LISTEN_TIMEOUT_SECONDS / _POLL_SECONDS)
        for _ in range(int(START_TIMEOUT_SECONDS / _POLL_SECONDS)):
            recorded = postmaster.recorded(self._data)
            if recorded is None:
                self._launch()
            elif postmaster.is_listening(recorded) and recorded.socket_dir:
                if recorded.is_ready:
                    return recorded.socket_dir
                time.sleep(_POLL_SECONDS)
            elif listen_attempts and postmaster.may_be_starting(recorded.pid):
                listen_attempts -= 1
                time.sleep(_POLL_SECONDS)
            else:
                self._clean_up(recorded)
                self._launch()
        raise SandboxError(f"The embedded database did not become ready; its log is {self._log}")

    def _clean_up(self, dead: postmaster.Postmaster) -> None:
        _remove_runtime(dead)
        if postmaster.is_alive(dead.pid):
            # Another process has the pid now. PostgreSQL cannot detect that and would not start. If we are wrong,
            # the lock on the shared memory still prevents a second server.
            (self._data / postmaster.FILE_NAME).unlink(missing_ok=True)

    def _launch(self, *, runtime: Path | None = None) -> bool:
        """Start PostgreSQL; return whether it runs, and raise if a retry is useless."""
        runtime = runtime or accounts.runtime_dir(accounts.choose(self._data), os.environ)
        options = [f"-c {name}={shlex.quote(value)}" for name, value in self._settings.items()]
        options.append(f"-k {shlex.quote(str(runtime))}")
        try:
            programs = Programs(self._data, runtime=runtime)
            programs.run(
                *("pg_ctl", "start", "-w", "-t", str(START_TIMEOUT_SECONDS)),
                *("-l", f"{programs.directory}/{self._log.name}", "-o", " ".join(options)),
            )
        except SandboxError as error:
            shutil.rmtree(runtime, ignore_errors=True)
            complaint = self._last_error()
            # After a kill of the postmaster, its children hold the shared memory for a moment.
            if "shared memory block" not in complaint:
                raise SandboxError(
                    f"The embedded database does not start: {complaint or error}; see {self._log}"
                ) from error
            time.sleep(_RETRY_SECONDS)
            return False
        return True

    def _last_error(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
        except OSError:
            return ""
        errors = [line for line in lines if "FATAL" in line or "PANIC" in line]
        return errors[-1] if errors else ""


def _copy_template(directory: Path, *, initdb: Callable[[Path], None]) -> bool:
    """Create a database from the template; return whether that was possible."""
    try:
        template = postgres_template.path(os.environ, options=INITDB_OPTIONS)
        postgres_template.provide(template, make=initdb)
        postgres_template.copy(template, directory, account=accounts.choose(directory))
    except (OSError, RuntimeError, ImportError):
        # For example, a user without a home directory, or a wheel without metadata.
        return False
    return True


def _initdb(directory: Path, *, interruption: Interruption) -> None:
    account = accounts.choose(directory)
    runtime = accounts.runtime_dir(account, os.environ)
    try:
        directory.mkdir(mode=0o700)
        if not account.is_ours:
            os.chown(directory, account.uid, account.gid)
        Programs(directory, runtime=runtime).run("initdb", *INITDB_OPTIONS, interruption=interruption)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _remove_runtime(stopped: postmaster.Postmaster) -> None:
    if stopped.socket_dir and stopped.socket_dir.name.startswith(accounts.RUNTIME_PREFIX):
        shutil.rmtree(stopped.socket_dir, ignore_errors=True)
