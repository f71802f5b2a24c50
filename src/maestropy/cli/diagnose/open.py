"""`maestro diagnose open`: serve the console over an archive, on this computer, until Ctrl-C. No system is reached."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter, validators

from maestropy import installation
from maestropy.cli import errors, lifecycle, screen
from maestropy.cli.trace import endings
from maestropy.trace.errors import TraceError
from maestropy.trace.exit_codes import Exit

if TYPE_CHECKING:
    from maestropy.diagnose.archive import Opened

app = App(
    name="open",
    usage="maestro diagnose open ARCHIVE [OPTIONS]",
    help="Show an archive in a browser of this computer, on the pages of `maestro console`, until Ctrl-C. Offline.",
    help_epilogue="""\
Examples:

  maestro diagnose open incident.tar.zst
      then http://127.0.0.1:8088

  maestro diagnose open incident.tar.zst --port 0
      on a free port, which is printed

Exit codes: 0 stopped, 2 usage, 3 the archive cannot be read, or the port is in use, 130 Ctrl-C.""",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def open_archive(
    archive: Path,
    *,
    port: Annotated[int, Parameter(validator=validators.Number(gte=0, lte=65535))] = 8088,
) -> int:
    """Serve an archive.

    Parameters
    ----------
    archive
        A file of `maestro diagnose collect`.
    port
        The port on 127.0.0.1; 0 for a free one.
    """
    try:
        from maestropy.diagnose import archive as archives

        # Gigabytes of logs take a minute.
        screen.write_error(f"Reading {archive}\n")
        with (
            tempfile.TemporaryDirectory(prefix="maestro-diagnose-") as folder,
            archives.opened(archive, folder=Path(folder)) as opened,
        ):
            return lifecycle.run(lambda stop: _serve(opened, port=port, stop=stop))
    except ModuleNotFoundError as error:
        screen.write_error(f"Error: {error.name} is not installed; {installation.hint('diagnose')}\n")
        return int(Exit.NO_ACCESS)
    except TraceError as error:
        return endings.failed(error)
    except KeyboardInterrupt:
        # While the archive is unpacked; the folder is removed.
        return errors.INTERRUPTED


async def _serve(opened: "Opened", *, port: int, stop: lifecycle.Stop) -> int:
    from maestropy.console.archived import archived
    from maestropy.console.serve import listening

    async with archived(opened) as running, listening(running, port=port) as address:
        screen.write(f"Console of {running.title}: {address}\nCtrl-C stops it.\n")
        await stop.wait()
    return 0
