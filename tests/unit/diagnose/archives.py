"""Build archives for tests: from files by name, from tar members, from bytes."""

import io
import json
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from maestropy.diagnose import archive, manifest
from maestropy.diagnose.analysis import analyze
from maestropy.trace.logs.read.inputs import archives

NOW = "2026-08-20T11:00:00+00:00"


def packed(target: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]]) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content) if info.isfile() else 0
            tar.addfile(info, io.BytesIO(content))
    target.write_bytes(archives.zstd().compress(raw.getvalue()))
    return target


def of_files(target: Path, files: Mapping[str, bytes | str], *, about: manifest.Manifest | None = None) -> Path:
    """Write an archive with a manifest, as a collection does."""
    whole = about or manifest.Manifest(version="0.2.0", collected_at=NOW)
    contents = {name: content.encode() if isinstance(content, str) else content for name, content in files.items()}
    first = [(tarfile.TarInfo(manifest.NAME), manifest.encode(whole))]
    return packed(target, [*first, *((tarfile.TarInfo(name), content) for name, content in contents.items())])


def lines(*documents: Mapping[str, Any]) -> str:
    return "".join(json.dumps(document) + "\n" for document in documents)


def analysed(path: Path) -> analyze.Analysis:
    with tempfile.TemporaryDirectory() as folder, archive.opened(path, folder=Path(folder)) as opened:
        return analyze.analyze(opened)


def row(number: int = 1, *, consumer: str = "c1", applied: str = "True", message: str = "") -> dict[str, Any]:
    """Return a work that the agent reported as applied, or not."""
    status = {"type": "Applied", "status": applied, "message": message, "observedGeneration": 1, "reason": "R"}
    manifests = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"cm-{number}", "namespace": "d"}}]
    meta = {"kind": "ConfigMap", "resource": "configmaps", "group": "", "version": "v1", "name": f"cm-{number}",
            "namespace": "d", "ordinal": 0}  # fmt: skip
    return {
        "trace": "row", "id": f"id-{number}", "source": "s", "consumer_name": consumer, "version": 1,
        "created_at": "2026-08-20T10:00:00+00:00", "updated_at": "2026-08-20T10:00:01+00:00", "deleted_at": None,
        "payload": {"metadata": {"name": f"work-{number}"}, "data": {"manifests": manifests}},
        "status": {
            "resourceversion": 1, "sequenceid": "1",
            "data": {"conditions": [status],
                     "resourceStatus": [{"resourceMeta": meta, "conditions": [status]}]},
        },
        "events": [],
    }  # fmt: skip
