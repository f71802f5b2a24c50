"""`maestro resourcebundle edit`: change a resource bundle in an editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maestropy.cli import screen
from maestropy.cli.client import inputs
from maestropy.cli.client import output as rendering
from maestropy.cli.client.bundles import steps
from maestropy.cli.client.bundles.reads import BundleKey
from maestropy.cli.client.connection import GrpcFlags, RestFlags, open_client
from maestropy.cli.errors import CommandError, UsageError
from maestropy.untrusted import files
from maestropy.untrusted.errors import InputRejected

if TYPE_CHECKING:
    from maestropy.sdk.blocking import Maestro

_VARIABLES = ("MAESTRO_EDITOR", "KUBE_EDITOR", "VISUAL", "EDITOR")
_EDITED = ("id", "consumer_name", "version", "metadata", "manifests", "manifest_configs", "delete_option", "executor")
"""The fields that `apply` takes; the others belong to the server and the agent."""
_CANCELLED = "Edit cancelled, no changes made\n"
_HEAD = (
    "Edit the resource bundle below. Lines that begin with '#' are ignored, and an empty file cancels the edit.",
    "If the change is rejected, this file is opened again with the reason.",
)


def edit(key: BundleKey, /, *, rest: RestFlags | None = None, grpc: GrpcFlags | None = None) -> int:
    """Change a resource bundle in the editor of MAESTRO_EDITOR, KUBE_EDITOR, VISUAL or EDITOR, else vi.

    A change that another client made meanwhile is not overwritten: the edit is rejected, and the file kept.
    """
    with open_client(rest, grpc) as client:
        bundle = steps.get(client, key)
        before = {name: bundle[name] for name in _EDITED if bundle.get(name)}
        _Edit(client, before).run()
    return 0


class _Edit:
    """One edit: a file that is opened again until its content is accepted or given up."""

    def __init__(self, client: "Maestro", before: dict[str, Any]) -> None:
        self._client = client
        self._before = before
        descriptor, name = tempfile.mkstemp(prefix="maestro-edit-", suffix=".yaml")
        os.close(descriptor)
        self._file = Path(name)

    def run(self) -> None:
        """Open the editor, apply what was saved, and remove the file; a rejected file is kept."""
        text = rendering.as_yaml(self._before)
        reason = ""
        while True:
            # The same text again, after a rejection, means that the user gives up.
            edited = self._open(text, reason)
            if not edited.strip() or edited == text:
                break
            text = edited
            reason = self._apply()
            if not reason:
                self._file.unlink()
                return
        if reason:
            raise CommandError(f"{reason}; your changes are in {self._file}")
        self._file.unlink()
        screen.write(_CANCELLED)

    def _open(self, text: str, reason: str) -> str:
        """Return the text that the user saved, without comments."""
        head = [*_HEAD, *([f"Rejected: {line}" for line in reason.splitlines()] if reason else [])]
        self._file.write_text("".join(f"# {line}\n" for line in head) + text, encoding="utf-8")
        editor = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "vi")
        try:
            code = subprocess.run([*shlex.split(editor), str(self._file)], check=False).returncode  # noqa: S603 - the user's own editor
        except (OSError, ValueError) as error:
            self._file.unlink()
            raise CommandError(f"the editor {editor!r} cannot be started ({error}); set EDITOR") from error
        if code:
            raise CommandError(f"the editor {editor!r} ended with {code}; the file is {self._file}")
        try:
            lines = files.read_text(self._file, most=files.MANIFEST_BYTES).splitlines(keepends=True)
        except FileNotFoundError as error:
            remedy = "nothing was changed; run the command again, and save the file in place"
            raise CommandError(f"the editor {editor!r} removed the file {self._file}: {remedy}") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"{self._file} is not UTF-8 (byte {error.start}): save it as UTF-8") from error
        except (OSError, InputRejected) as error:
            # The editor left a folder, a named pipe, or a file without end in its place.
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandError(f"{self._file} cannot be read: {why}; nothing was changed") from error
        return "".join(line for line in lines if not line.startswith("#"))

    def _apply(self) -> str:
        """Apply the edited bundle; return why it was rejected, or nothing."""
        from maestropy.sdk import errors

        try:
            documents = inputs.documents(self._file)
            if len(documents) != 1:
                return f"the file holds {len(documents)} documents, not one"
            for name in ("id", "consumer_name", "version"):
                if documents[0].get(name) != self._before.get(name):
                    return f"{name} cannot be edited"
            if documents[0] == self._before:
                screen.write(_CANCELLED)
                return ""
            self._client.resource_bundles.apply(documents[0])
        except (UsageError, errors.Invalid, errors.Conflict) as error:
            return str(error)
        screen.write(f"Resource bundle {self._before['id']} edited\n")
        return ""
