"""Write the bill of materials of an image as CycloneDX JSON: what pip installed and what came from Debian.

cyclonedx-py reads the packages of Python; the packages of Debian are added from the image's own list.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SPECIFICATION = "1.6"
DISTRIBUTION = "debian"


class Unreadable(Exception):
    """The image has not what a bill of materials is made of."""


def write(root: Path, target: Path, *, epoch: str) -> None:
    """Read the files of an image and write their bill of materials."""
    packages = next((root / "opt" / "maestro" / "lib").glob("python*/site-packages"), None)
    if packages is None:
        raise Unreadable(f"{root} has no /opt/maestro with packages of Python")
    found = of_python(packages, epoch=epoch)
    components = [*found.get("components", []), *of_debian(root)]
    found["components"] = sorted(components, key=lambda each: str(each["bom-ref"]))
    target.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def of_python(packages: Path, *, epoch: str) -> dict[str, Any]:
    """Let cyclonedx-py describe the packages of a folder."""
    with tempfile.TemporaryDirectory() as place:
        # It asks an interpreter for its path of modules; the one of the image does not run here.
        interpreter = Path(place) / "python"
        interpreter.write_text(f"#!/bin/sh\necho '{json.dumps([str(packages)])}'\n", encoding="utf-8")
        interpreter.chmod(0o755)
        tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
        done = subprocess.run(
            [*tool, f"--spec-version={SPECIFICATION}", str(interpreter)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": epoch},
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_debian(root: Path) -> list[dict[str, Any]]:
    """Return the packages of Debian that an image lists."""
    status = root / "var" / "lib" / "dpkg" / "status"
    if not status.is_file():
        return []
    release = dict(line.split("=", 1) for line in (root / "etc" / "os-release").read_text().splitlines() if "=" in line)
    distribution = f"{DISTRIBUTION}-{release['VERSION_ID'].strip(chr(34))}"
    entries = status.read_text(encoding="utf-8").split("\n\n")
    return [component(entry, distribution) for entry in entries if entry.strip()]


def component(entry: str, distribution: str) -> dict[str, Any]:
    """Describe one package of Debian's list."""
    fields = dict(line.split(": ", 1) for line in entry.splitlines() if ": " in line and not line.startswith(" "))
    name, version = fields["Package"], fields["Version"]
    purl = f"pkg:deb/{DISTRIBUTION}/{name}@{version}?arch={fields['Architecture']}&distro={distribution}"
    return {"bom-ref": purl, "name": name, "purl": purl, "type": "library", "version": version}
