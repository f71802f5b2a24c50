"""Install Maestro into /opt/maestro; runs in the build stage of the Containerfile, with its arguments as environment.

Only the standard library, because there is nothing else yet. The result depends on the packages alone: no times, no
bytecode that does, no record of where a package came from.
"""

import compileall
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from py_compile import PycInvalidationMode

SOURCE = Path("/src")
HOME = Path("/opt/maestro")
USER = 65532
# `maestro up` needs them, and the databases and clusters that they start are not in the image.
NOT_SERVED = ("sandbox", "testing")


def main() -> None:
    """Install, take away what is not served, compile, and add the user."""
    venv.create(HOME, with_pip=False, symlinks=True)
    # pip may come as a wheel, which Python runs as it is; a base without one has it installed.
    pip = [os.environ["PIP_PROGRAM"]] if os.environ.get("PIP_PROGRAM") else ["-m", "pip"]
    install = [sys.executable, *pip, "--python", str(HOME / "bin" / "python"), "install"]
    install += ["--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
    locked = ["--only-binary=:all:", "--constraint", str(SOURCE / "constraints.txt")]
    subprocess.run([*install, *locked, *requirements(os.environ["EXTRAS"])], check=True)
    # Apart, because a folder has no hash that pip could check.
    subprocess.run([*install, "--no-deps", str(SOURCE)], check=True)
    (packages,) = (HOME / "lib").glob("python*/site-packages")
    for package in NOT_SERVED:
        shutil.rmtree(packages / "maestropy" / package)
    for path in packages.glob("*.dist-info/direct_url.json"):
        path.unlink()
    # One process, and no times in the files: the same source gives the same bytes. Also of what pip has compiled by
    # using it.
    if not compileall.compile_dir(
        packages, quiet=1, workers=1, force=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH
    ):
        sys.exit("some of the installed files cannot be compiled")
    for name, line in (
        ("/etc/passwd", f"maestro:x:{USER}:{USER}:Maestro:/tmp:/usr/sbin/nologin\n"),
        ("/etc/group", f"maestro:x:{USER}:\n"),
    ):
        with Path(name).open("a", encoding="utf-8") as file:
            file.write(line)


def requirements(extras: str) -> list[str]:
    """Return what the project needs with these extras."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    return [*project["dependencies"], *(each for name in extras.split(",") for each in optional[name])]


if __name__ == "__main__":
    main()
