"""Read the inputs of client commands: files of `-f`, and confirmations."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from maestropy.cli import screen
from maestropy.cli.errors import CommandError, UsageError
from maestropy.untrusted import files, printable
from maestropy.untrusted.errors import InputRejected

if TYPE_CHECKING:
    from maestropy.sdk.work import Work

STDIN = Path("-")
_SUFFIXES = (".json", ".yaml", ".yml")


def documents(path: Path) -> list[dict[str, Any]]:
    """Return the YAML or JSON documents of a file, or of the files of a folder; `-` is standard input."""
    from maestropy.sdk._manifests import sources
    from maestropy.sdk.errors import Invalid

    if path != STDIN and path.is_dir():
        return [document for file in _files_in(path) for document in documents(file)]
    try:
        return sources.read(_standard_input() if path == STDIN else path)
    except Invalid as error:
        # Whatever is wrong with an input, the exit code is the same.
        raise UsageError(f"{error.reason}; {error.advice}") from error


def _files_in(folder: Path) -> list[Path]:
    """Return the files that kubectl reads of a folder, in order; folders in it are not read."""
    found = sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES and path.is_file())
    if not found:
        raise UsageError(f"{folder} has no file that ends in {', '.join(_SUFFIXES)}; folders in it are not read")
    return found


def _standard_input() -> str:
    if not hasattr(sys.stdin, "buffer"):  # replaced by a text stream
        return sys.stdin.read(files.MANIFEST_BYTES + 1)
    try:
        content = files.read_stream(sys.stdin.buffer, most=files.MANIFEST_BYTES, name="standard input")
        return content.decode("utf-8")
    except InputRejected as error:
        raise UsageError(f"{error}; give several files") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"standard input is not UTF-8 (byte {error.start}); save it as UTF-8") from error


def sort(documents: list[dict[str, Any]], *, consumer: str, name: str) -> "tuple[list[Work], list[dict[str, Any]]]":
    """Return the works and the resource bundles of documents; plain manifests become one work called `name`."""
    from maestropy.sdk.work import Work

    works, bundles, plain = [], [], []
    for document in documents:
        if document.get("kind") == "ManifestWork":
            works.append(_with_consumer(Work.from_dict(document), consumer=consumer))
        elif document.get("kind") in (None, "ResourceBundle") and "manifests" in document:
            bundles.append({**document, "consumer_name": consumer} if consumer else document)
        else:
            plain.append(document)
    if plain:
        if not (name and consumer):
            kinds = ", ".join(str(manifest.get("kind") or "no kind") for manifest in plain[:3])
            raise UsageError(f"the file holds plain manifests ({kinds}): give --consumer and --name for their work")
        works.append(Work(name, consumer=consumer).add(plain))
    return works, bundles


def _with_consumer(work: "Work", *, consumer: str) -> "Work":
    if consumer:
        work = work.wrap(work.manifest_work.with_metadata(namespace=consumer))
    if not work.consumer:
        raise UsageError(f"work {work.name!r} has no metadata.namespace: set it to the consumer, or give --consumer")
    return work


def confirm(question: str, *, yes: bool) -> None:
    """Return if the user confirms; raises CommandError otherwise."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandError(f"{question} There is no terminal to ask: add --yes")
    screen.write_error(f"{printable.escape(question)} [y/N] ")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was done")
