"""A PostgreSQL of our own, so that a server needs nothing but a directory.

Only the programs come from the wheel; we run them ourselves, because the wheel's own code would open our directories
to everybody and create users when it runs as root. The server outlives us if we are killed; whoever comes next finds
it and goes on with it. A lock held by the process, not by a file's existence, keeps a directory to one of us at a time.

PostgreSQL answers on a unix socket in a private directory and on nothing else, so it needs no password.
"""

import asyncio
import contextlib
import os
import random
import shlex
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from maestropy.aio import backoff, tasks
from maestropy.sandbox import account as accounts
from maestropy.sandbox import postmaster, template
from maestropy.sandbox.dirlock import DirectoryLock
from maestropy.sandbox.errors import SandboxError
from maestropy.sandbox.programs import Programs
from maestropy.store.dsn import Dsn

USER = "maestro"
DATABASE = "postgres"

# Recovery after a crash reads at most max_wal_size; a minute is far more than that takes.
START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 30
# How long a PostgreSQL that somebody else started may take until it listens.
HESITATION_SECONDS = 3
_PAUSE_SECONDS = 0.02
_RETRY_SECONDS = 0.25
_LOOK_SECONDS = 1.0
# After so long without trouble the next one is no repetition.
_WELL_SECONDS = 60.0

# Beyond PostgreSQL's defaults, which keep every commit safe: fsync and synchronous_commit stay on.
SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "128MB",
    # Fewer checkpoints under load; each one makes the next writes to every page larger.
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    # Nobody replicates from a laptop, so the log holds only what recovery needs.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # Our statements are short; compiling one costs more than running it.
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}

# For data that nobody misses after a crash of the computer. A kill -9 of PostgreSQL itself loses nothing here either.
EPHEMERAL_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

INITDB_OPTIONS = (
    f"--username={USER}",
    "--auth-local=trust",
    "--auth-host=reject",
    "--encoding=UTF8",
    "--locale=C",
    # Order by code point, the same on every system: an index made here is right elsewhere too.
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
)


class EmbeddedPostgres:
    """`async with EmbeddedPostgres(data_dir) as dsn:` runs a PostgreSQL whose data stays in `data_dir`.

    Should somebody end it meanwhile, it is started again at the same address, and `report` is told.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        max_connections: int = 200,
        is_ephemeral: bool = False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._cluster = Cluster(data_dir, max_connections=max_connections, is_ephemeral=is_ephemeral)
        self._report = report
        self._crew = tasks.Crew()

    async def __aenter__(self) -> Dsn:
        # In a thread, because not every event loop can start a process under another account.
        starting = asyncio.get_running_loop().run_in_executor(None, self._cluster.start)
        try:
            address = await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(SandboxError):
                await starting
            await asyncio.to_thread(self._cluster.stop)
            raise
        self._crew.start("embedded postgres", self._look_after())
        return address

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._crew.stop()
        await asyncio.to_thread(self._cluster.stop)

    async def _look_after(self) -> None:
        pauses = self._pauses()
        well_since = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                was_revived = await self._revive()
            except SandboxError as error:
                self._report(str(error))
            else:
                if not was_revived:
                    if time.monotonic() - well_since > _WELL_SECONDS:
                        pauses = self._pauses()
                    continue
                self._report("the embedded database had been ended by somebody; it was started again")
            await asyncio.sleep(next(pauses))
            well_since = time.monotonic()

    async def _revive(self) -> bool:
        # A start that has begun is finished: whoever ends us then ends what we started.
        reviving = asyncio.get_running_loop().run_in_executor(None, self._cluster.revive)
        try:
            return await asyncio.shield(reviving)
        except asyncio.CancelledError:
            await asyncio.wait([reviving])
            raise

    def _pauses(self) -> Iterator[float]:
        return backoff.delays(base=0.5, factor=2, cap=10.0, jitter=random.random)


class Cluster:
    """The PostgreSQL of one directory. Blocking; `EmbeddedPostgres` is for event loops.

    An ephemeral one starts sooner and writes faster, and may lose its data when the computer fails.
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

    def start(self) -> Dsn:
        """Make the database if it is new, start it if it does not run, and return its address."""
        try:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = DirectoryLock.take(self._home)
        except OSError as error:
            raise SandboxError(
                f"--data-dir={self._home} cannot be used ({error.strerror}); give a directory you can write to"
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

    def revive(self) -> bool:
        """Start PostgreSQL again, at the same address, if it has ended; return whether it had to be."""
        found = postmaster.recorded(self._data)
        if self._sockets is None or (found is not None and postmaster.may_be_starting(found.pid)):
            return False
        if found is not None:
            self._bury(found)
        shutil.rmtree(self._sockets, ignore_errors=True)
        try:
            accounts.make_private(self._sockets, accounts.choose(self._data))
        except OSError as error:
            raise SandboxError(f"The embedded database cannot be started again: {error}") from error
        return self._launch(runtime=self._sockets)

    def stop(self) -> None:
        """End PostgreSQL and every connection to it, without loss; then let others have the directory."""
        if self._lock is None:
            return
        try:
            running = postmaster.recorded(self._data)
            if running and postmaster.answers(running):
                self._end(running)
        finally:
            self._lock.release()
            self._lock = None

    def _end(self, running: postmaster.Postmaster) -> None:
        # SIGINT is PostgreSQL's fast shutdown; SIGQUIT gives up, and the next start recovers.
        for signal_, seconds in ((signal.SIGINT, STOP_TIMEOUT_SECONDS), (signal.SIGQUIT, 5)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, signal_)
            for _ in range(int(seconds / _PAUSE_SECONDS)):
                if postmaster.recorded(self._data) is None:
                    _remove_runtime(running)
                    return
                time.sleep(_PAUSE_SECONDS)

    def _create(self) -> None:
        # Made aside and moved into place when complete: a half-made one can then only be thrown away.
        unfinished = self._home / "postgres.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        if not (self._is_ephemeral and _copy_template(unfinished)):
            shutil.rmtree(unfinished, ignore_errors=True)
            _initdb(unfinished)
        unfinished.rename(self._data)

    def _run(self) -> Path:
        patience = int(HESITATION_SECONDS / _PAUSE_SECONDS)
        for _ in range(int(START_TIMEOUT_SECONDS / _PAUSE_SECONDS)):
            found = postmaster.recorded(self._data)
            if found is None:
                self._launch()
            elif postmaster.answers(found) and found.socket_dir:
                if found.is_ready:
                    return found.socket_dir
                time.sleep(_PAUSE_SECONDS)
            elif patience and postmaster.may_be_starting(found.pid):
                patience -= 1
                time.sleep(_PAUSE_SECONDS)
            else:
                self._bury(found)
                self._launch()
        raise SandboxError(f"The embedded database did not get ready; its last words are in {self._log}")

    def _bury(self, dead: postmaster.Postmaster) -> None:
        _remove_runtime(dead)
        if postmaster.is_alive(dead.pid):
            # The pid now belongs to somebody else, which PostgreSQL cannot tell: it would refuse to start. Should we
            # be wrong, its lock on the shared memory still keeps a second server out.
            (self._data / postmaster.FILE_NAME).unlink(missing_ok=True)

    def _launch(self, *, runtime: Path | None = None) -> bool:
        """Start PostgreSQL; returns whether it runs, and raises when trying again is pointless."""
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
            words = self._last_words()
            # After a kill of the first process its children need a moment to notice, and hold the memory until then.
            if "shared memory block" not in words:
                raise SandboxError(
                    f"The embedded database does not start: {words or error}; see {self._log}"
                ) from error
            time.sleep(_RETRY_SECONDS)
            return False
        return True

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:]
        except OSError:
            return ""
        complaints = [line for line in lines if "FATAL" in line or "PANIC" in line]
        return complaints[-1] if complaints else ""


def _copy_template(directory: Path) -> bool:
    """Make a database without initdb, if that can be done."""
    try:
        found = template.place(os.environ, options=INITDB_OPTIONS)
        template.provide(found, make=_initdb)
        template.copy(found, directory, account=accounts.choose(directory))
    except (OSError, RuntimeError, ImportError):
        # Also a user without a home, or programs without their metadata.
        return False
    return True


def _initdb(directory: Path) -> None:
    account = accounts.choose(directory)
    runtime = accounts.runtime_dir(account, os.environ)
    try:
        directory.mkdir(mode=0o700)
        if not account.is_ours:
            os.chown(directory, account.uid, account.gid)
        Programs(directory, runtime=runtime).run("initdb", *INITDB_OPTIONS)
    finally:
        shutil.rmtree(runtime, ignore_errors=True)


def _remove_runtime(gone: postmaster.Postmaster) -> None:
    if gone.socket_dir and gone.socket_dir.name.startswith(accounts.RUNTIME_PREFIX):
        shutil.rmtree(gone.socket_dir, ignore_errors=True)
