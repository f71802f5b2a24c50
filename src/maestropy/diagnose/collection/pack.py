"""Finish a collection: replace names if that is wanted, and write the archive and the key file."""

import os
import re
import secrets
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from maestropy.diagnose import archive, works_of
from maestropy.diagnose import manifest as manifests
from maestropy.diagnose.collection.staging import Staging
from maestropy.diagnose.redaction import anonymise
from maestropy.trace.errors import InputUnreadable
from maestropy.untrusted import files

_KEY_BYTES: Final = 256 << 20
_HOST: Final = re.compile(r"://(?:[^\s/@]*@)?([A-Za-z0-9.-]+)")


def read_key(path: Path) -> anonymise.Key:
    """Return the key of a file, or a new one if there is no such file."""
    if not path.exists():
        return anonymise.Key(key=secrets.token_hex(32))
    try:
        key = msgspec.json.decode(files.read(path, most=_KEY_BYTES), type=anonymise.Key)
        bytes.fromhex(key.key)
    except (OSError, ValueError) as error:
        raise InputUnreadable(f"{path} is no key file of `maestro diagnose collect --anonymise`: {error}") from error
    return key


def finish(
    staging: Staging, manifest: manifests.Manifest, *, output: Path, key: anonymise.Key | None, key_file: Path | None
) -> None:
    """Write the archive; with a key, write the key file too."""
    names = staging.files()
    if key is None or key_file is None:
        manifest.files = {name: (staging.folder / name).stat().st_size for name in names}
        archive.write(staging.folder, output, manifest=manifest, files=names)
        return
    folder = staging.folder.with_name(f"{staging.folder.name}.anonymous")
    archive.discard(folder)
    try:
        pseudonyms = _pseudonyms(staging.folder, names, key=key, manifest=manifest)
        written = [_replaced(staging.folder, name, folder, pseudonyms=pseudonyms) for name in names]
        replaced = msgspec.convert(pseudonyms.value(msgspec.to_builtins(manifest)), manifests.Manifest)
        replaced.is_anonymised = True
        replaced.files = {name: (folder / name).stat().st_size for name in written}
        # First the key: an archive whose pseudonyms nobody can resolve is worth less.
        _write_key(anonymise.Key(key=key.key, names=dict(pseudonyms.names)), key_file)
        archive.write(folder, output, manifest=replaced, files=written)
        manifest.is_anonymised = True
    finally:
        archive.discard(folder)


def _pseudonyms(
    folder: Path, names: list[str], *, key: anonymise.Key, manifest: manifests.Manifest
) -> anonymise.Pseudonyms:
    found: dict[str, set[str]] = {}
    for cluster in manifest.clusters:
        found.setdefault("cluster", set()).update({cluster.label, cluster.folder})
        found.setdefault("consumer", set()).add(cluster.consumer)
    for name in names:
        if name.startswith("logs/"):
            continue
        for _, document in works_of.documents(folder / name):
            anonymise.names_in(document, found=found)
            found.setdefault("host", set()).update(_HOST.findall(orjson.dumps(document).decode()))
    pseudonyms = anonymise.Pseudonyms(key)
    for kind in sorted(found):
        pseudonyms.add(kind, sorted(found[kind]))
    return pseudonyms


def _replaced(source: Path, name: str, target: Path, *, pseudonyms: anonymise.Pseudonyms) -> str:
    """Write a file with pseudonyms; return its name, which may be one too."""
    shown = pseudonyms.text(name)
    path = target / shown
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (source / name).open("rb") as reading, path.open("wb") as writing:
        os.fchmod(writing.fileno(), 0o600)
        is_json = name.endswith((".jsonl", ".json"))
        for line in reading:
            text = line.decode("utf-8", "surrogateescape").rstrip("\n")
            writing.write(
                (_document(text, pseudonyms) if is_json else pseudonyms.text(text)).encode("utf-8", "surrogateescape")
            )
            writing.write(b"\n")
        stat = os.fstat(reading.fileno())
    os.utime(path, (stat.st_mtime, stat.st_mtime))
    return shown


def _document(text: str, pseudonyms: anonymise.Pseudonyms) -> str:
    value: Any = orjson.loads(text)
    return orjson.dumps(pseudonyms.value(value)).decode()


def _write_key(key: anonymise.Key, path: Path) -> None:
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(msgspec.json.encode(key))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
