"""Build, try out and tag a release.

    python scripts/release.py build          wheel and sdist into dist/, tried out in a fresh environment
    python scripts/release.py tag VERSION    the same, after checking version, changelog and tree; then a tag

Nothing is uploaded or pushed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from maestropy import __version__

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
_LOCK = str(ROOT / "constraints.txt")
_SDK_EXAMPLE = """
from maestropy import AsyncMaestro, Maestro, Work, errors, targeting
work = Work("hello").add({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}})
assert work.name == "hello" and Maestro and AsyncMaestro and errors and targeting
"""


def main(words: list[str]) -> int:
    """Carry out one of the two commands."""
    match words:
        case ["build"]:
            _build()
        case ["tag", version]:
            _check(version)
            _build()
            _run("git", "tag", "--annotate", f"v{version}", "--message", f"maestropy {version}")
            sys.stdout.write(f"tagged v{version}; push it with: git push origin v{version}\n")
        case _:
            sys.stderr.write(f"{__doc__}\n")
            return 2
    return 0


def _check(version: str) -> None:
    if version != __version__:
        raise SystemExit(f"VERSION is {version!r}, and src/maestropy/_version.py says {__version__!r}; make them equal")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## \[?{re.escape(version)}\]? - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE):
        raise SystemExit(f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD'; move what is unreleased into one")
    if _output("git", "status", "--porcelain"):
        raise SystemExit("the working tree has uncommitted changes; commit them first")
    if _output("git", "tag", "--list", f"v{version}"):
        raise SystemExit(f"tag v{version} exists already; choose the next version")


def _build() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT), quiet=True)
    wheel = DIST / f"maestropy-{__version__}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        # pip checks hashes only when every requirement has one, so the locked dependencies come first.
        _run(str(python), "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "--requirement", _LOCK)
        _run(str(python), "-m", "pip", "install", "--quiet", "--no-deps", str(wheel))
        _run(str(python), "-c", _SDK_EXAMPLE)
        _run(str(Path(folder) / "bin" / "maestro"), "demo", folder=folder)
    sys.stdout.write("".join(f"{file.relative_to(ROOT)}\n" for file in sorted(DIST.iterdir())))


def _run(*command: str, folder: str | Path = ROOT, quiet: bool = False) -> None:
    result = subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL if quiet else None)
    if result.returncode != 0:
        raise SystemExit(f"failed with exit code {result.returncode}: {' '.join(command[:6])} ...")


def _output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
