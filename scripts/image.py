"""Build the container image of deploy/Containerfile without a daemon, a registry or root of somebody else's.

    python -m scripts.image [--folder dist/image] [--suite bookworm] [--base NAME] [--extras server,agent] [--again]

The base is made of Debian's packages by mmdebstrap, the packages of Python are downloaded in the versions and with the
hashes of constraints.txt, and buildah puts both together offline. The folder then holds the image as an OCI archive and
its bill of materials. `--again` builds a second time from nothing and tells which layers differ.
"""

import argparse
import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from maestropy import __version__
from scripts import image_sbom

ROOT = Path(__file__).parents[1]
TOOLS = ("buildah", "mmdebstrap", "dpkg-deb", "apt-get")
PYTHONS = {"bookworm": "3.11", "trixie": "3.13"}
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
SHOWN_FILES = 10
NEWEST_GLIBC = 36
OLDEST_GLIBC = 17
EXTRAS = "server,agent,pubsub,azure"
# What apt and pip say without a network.
OUT_OF_REACH = (
    "Could not resolve",
    "Could not connect",
    "Temporary failure",
    "Connection refused",
    "Network is unreachable",
)
# Nobody reads manuals or other character sets in a container; licences stay.
LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/lintian/*", "/usr/lib/*/gconv/*")


class Failed(Exception):
    """The image was not built; the text says why."""

    code = 1


class Unavailable(Failed):
    """It cannot be built on this machine: a program or the packages are out of reach."""

    code = 3


@dataclass(frozen=True, kw_only=True)
class Order:
    """What is to be built."""

    suite: str
    extras: str
    base: str
    """A public base image instead of Debian's packages; empty: none."""
    version: str
    revision: str
    epoch: str

    @property
    def python(self) -> str:
        return PYTHONS[self.suite]


@dataclass(frozen=True, kw_only=True)
class Built:
    """An image that was built."""

    archive: Path
    sbom: Path
    digest: str
    layers: tuple[str, ...]
    download: int
    """Bytes of the compressed layers."""
    size: int
    """Bytes of the files."""


def main() -> int:
    """Build, and say what came out."""
    options = arguments()
    order = Order(
        suite=options.suite,
        extras=options.extras,
        base=options.base,
        version=__version__,
        revision=git("rev-parse", "HEAD") or "unknown",
        epoch=os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or "0",
    )
    folder = Path(options.folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        check_machine()
        made = build(order, folder)
        say(f"{made.archive}: {megabytes(made.size)} MB, {megabytes(made.download)} MB to download")
        say(f"{made.sbom}: the bill of materials")
        say(f"digest {made.digest}")
        if options.again:
            with tempfile.TemporaryDirectory(dir=folder) as other:
                compare(made, build(order, Path(other)))
            say("a second build from nothing has the same digest")
    except Failed as reason:
        sys.stderr.write(f"image: {reason}\n")
        return reason.code
    return 0


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Build the container image.")
    parser.add_argument("--folder", default="dist/image", help="where image and bill of materials go")
    parser.add_argument("--suite", default="bookworm", choices=PYTHONS, help="Debian's release (default bookworm)")
    parser.add_argument("--extras", default=EXTRAS, help=f"the extras to install (default {EXTRAS})")
    parser.add_argument("--base", default="", help="a base image with Python and pip instead of Debian's packages")
    parser.add_argument("--again", action="store_true", help="build twice and compare")
    return parser.parse_args()


def check_machine() -> None:
    """Raise `Unavailable` where a program is missing."""
    missing = [name for name in TOOLS if shutil.which(name) is None]
    if missing:
        raise Unavailable(f"{', '.join(missing)} not found; on Debian: apt-get install buildah mmdebstrap")
    if platform.machine() not in ARCHITECTURES:
        raise Unavailable(f"no image for {platform.machine()}; there are {', '.join(ARCHITECTURES)}")


def build(order: Order, folder: Path) -> Built:
    """Build into a folder, with a storage of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="image-", ignore_cleanup_errors=True) as place:
        buildah = Buildah(Path(place))
        try:
            wheels = download_wheels(order, Path(place) / "wheels")
            base = order.base or debian_base(order, buildah, Path(place))
            image = buildah.build(order, base=base, wheels=wheels)
            return export(order, buildah, image=image, folder=folder)
        finally:
            buildah("rm", "--all")
            buildah("rmi", "--all", "--force")


@dataclass(frozen=True)
class Buildah:
    """buildah, with its storage in one folder."""

    place: Path

    def __call__(self, *words: str) -> str:
        where = ["--root", str(self.place / "storage"), "--runroot", str(self.place / "run")]
        return run("buildah", *where, *words)

    def build(self, order: Order, *, base: str, wheels: Path) -> str:
        """Build the Containerfile and return the image."""
        pip = next(wheels.glob("pip-*.whl")).name
        given = {
            "BASE": base,
            "EXTRAS": order.extras,
            "VERSION": order.version,
            "REVISION": order.revision,
            "SOURCE_DATE_EPOCH": order.epoch,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": "/wheels",
            "PIP_PROGRAM": f"/wheels/{pip}/pip",
        }
        words = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
        recipe = ["--file", "deploy/Containerfile", "--ignorefile", "deploy/Containerfile.dockerignore"]
        fixed = ["--format=oci", f"--timestamp={order.epoch}", "--isolation=chroot", "--layers=false"]
        pull = [] if order.base else ["--pull-never"]
        name = f"maestro:{order.version}"
        mount = ["--volume", f"{wheels}:/wheels:ro"]
        self("build", *recipe, *fixed, *pull, *mount, *words, "--tag", name, str(ROOT))
        return name

    @contextlib.contextmanager
    def mounted(self, image: str) -> Iterator[Path]:
        """Let the files of an image be read."""
        container = self("from", "--pull-never", image).strip()
        try:
            yield Path(self("mount", container).strip())
        finally:
            self("umount", container)
            self("rm", container)


def debian_base(order: Order, buildah: Buildah, place: Path) -> str:
    """Make a base image of Debian's packages: Python, its libraries and certificates, and nothing that starts them."""
    say(f"base: Debian {order.suite} with Python {order.python}")
    hook = f'{sys.executable} {ROOT / "deploy" / "image" / "base.py"} "$1"'
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    options = ["--variant=extract", f"--include=python{order.python},libstdc++6", f"--extract-hook={hook}", *left_out]
    licences = "--dpkgopt=path-include=/usr/share/doc/*/copyright"
    archive = place / "base.tar"
    with from_outside("the packages of Debian"):
        run("mmdebstrap", "--quiet", *options, licences, order.suite, str(archive), epoch=order.epoch)
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, str(archive), "/")
    buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container)
    buildah("commit", "--quiet", "--format=oci", f"--timestamp={order.epoch}", container, "maestro-base")
    buildah("rm", container)
    archive.unlink()
    return "localhost/maestro-base"


def download_wheels(order: Order, folder: Path) -> Path:
    """Download what the image installs, in the versions and with the hashes of constraints.txt."""
    say(f"packages: {order.extras}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"]
    unknown = [name for name in order.extras.split(",") if name not in optional]
    if unknown:
        raise Failed(f"no extra {', '.join(unknown)}; there are {', '.join(optional)}")
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    needed += [each for name in order.extras.split(",") for each in optional[name]]
    machine = platform.machine()
    # pip takes no newest one and finds the older ones itself; Debian 12 has glibc 2.36.
    versions = range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)
    platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in versions]
    target = [f"--python-version={order.python}", "--implementation=cp", "--only-binary=:all:", *platforms]
    where = ["--dest", str(folder), "--constraint", str(ROOT / "constraints.txt"), "--quiet"]
    download = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check"]
    with from_outside("the packages of Python"):
        run(*download, *target, *where, *needed)
        # Installs the others, and stays out of the image.
        alone = ["--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
        run(*download, *alone, f"pip=={metadata.version('pip')}")
    return folder


@contextlib.contextmanager
def from_outside(what: str) -> Iterator[None]:
    """Tell a machine that cannot reach something from a recipe that is wrong."""
    try:
        yield
    except Failed as reason:
        if any(sign in str(reason) for sign in OUT_OF_REACH):
            raise Unavailable(f"{what} are out of reach: {reason}") from reason
        raise


def export(order: Order, buildah: Buildah, *, image: str, folder: Path) -> Built:
    """Write image and bill of materials."""
    architecture = ARCHITECTURES[platform.machine()]
    archive = folder / f"maestro-{order.version}-{architecture}.oci.tar"
    archive.unlink(missing_ok=True)
    buildah("push", "--quiet", image, f"oci-archive:{archive}:{image}")
    sbom = folder / f"maestro-{order.version}-{architecture}.cdx.json"
    with buildah.mounted(image) as root:
        image_sbom.write(root, sbom, epoch=order.epoch)
        size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_symlink() or path.is_file())
    digest, manifest = read_archive(archive)
    layers = tuple(layer["digest"] for layer in manifest["layers"])
    download = sum(layer["size"] for layer in manifest["layers"])
    return Built(archive=archive, sbom=sbom, digest=digest, layers=layers, download=download, size=size)


def read_archive(archive: Path) -> tuple[str, dict[str, Any]]:
    """Return the digest and the manifest of the image in an OCI archive."""
    with tarfile.open(archive) as files:

        def read(name: str) -> dict[str, Any]:
            file = files.extractfile(name)
            assert file is not None, name
            found: dict[str, Any] = json.load(file)
            return found

        digest = read("index.json")["manifests"][0]["digest"]
        return digest, read(f"blobs/{digest.replace(':', '/')}")


def compare(first: Built, second: Built) -> None:
    """Fail with what differs: the layers, and the files in them."""
    if first.sbom.read_bytes() != second.sbom.read_bytes():
        raise Failed("the bills of materials of two builds differ")
    if first.digest == second.digest:
        return
    told = []
    for number, (one, other) in enumerate(zip(first.layers, second.layers, strict=True)):
        if one != other:
            here, there = layer_files(first.archive, one), layer_files(second.archive, other)
            names = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
            told.append(f"layer {number}: {', '.join(names[:SHOWN_FILES]) or 'the order of its files'}")
    raise Failed(f"two builds differ. {'; '.join(told) or 'Only their configuration does'}")


def layer_files(archive: Path, digest: str) -> dict[str, tuple[object, ...]]:
    """Return the files of a layer with what counts of them."""
    with tarfile.open(archive) as files:
        blob = files.extractfile(f"blobs/{digest.replace(':', '/')}")
        assert blob is not None, digest
        with tarfile.open(fileobj=blob, mode="r:*") as layer:
            return {
                member.name: (
                    member.mode,
                    member.uid,
                    member.gid,
                    member.mtime,
                    member.linkname,
                    hashlib.sha256(content.read()).hexdigest() if (content := content_of(layer, member)) else "",
                )
                for member in layer
            }


def content_of(layer: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes] | None:
    """Return the content of a regular file."""
    return layer.extractfile(member) if member.isfile() else None


def run(*command: str, epoch: str = "") -> str:
    """Run a program that must succeed and return what it prints."""
    environment = {**os.environ, **({"SOURCE_DATE_EPOCH": epoch} if epoch else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode != 0:
        raise Failed(f"{words_of(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def words_of(command: Sequence[str]) -> str:
    """Return the words of a command that say what it is."""
    return " ".join(command[:2]) if len(command) > 1 else command[0]


def git(*words: str) -> str:
    """Return what git says; empty where this is no checkout."""
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S607
    return done.stdout.strip() if done.returncode == 0 else ""


def megabytes(size: int) -> int:
    """Round to millions of bytes."""
    return round(size / 1_000_000)


def say(text: str) -> None:
    """Tell how far we are."""
    sys.stdout.write(f"==> image: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
