"""Make the extracted packages of mmdebstrap a base for an image; its hook, which gets the folder of the root.

Packages are extracted, not installed, so there is neither a shell nor a package manager. What their scripts would have
done and Python needs is done here: the file of certificates, the users, and the list of packages that scanners read.
"""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

# Their files only: as dependencies they would bring perl and a shell.
WITHOUT_DEPENDENCIES = ("base-files", "ca-certificates", "tzdata")
# Dependencies of others that nothing at run time uses.
NOT_USED = ("dpkg", "tar")
FOLDERS = ("dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr/local/bin", "var/tmp")


def main(root: Path) -> None:
    """Complete the root."""
    archives = root / "var" / "cache" / "apt" / "archives"
    download(archives)
    for name in WITHOUT_DEPENDENCIES:
        (archive,) = archives.glob(f"{name}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", str(archive), str(root)], check=True)
    for name in NOT_USED:
        for archive in archives.glob(f"{name}_*.deb"):
            remove(archive, root)
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var" / "tmp").chmod(0o1777)
    certificates(root)
    write(root / "etc" / "passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n")
    write(root / "etc" / "group", "root:x:0:\n")
    write(root / "etc" / "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    (python,) = (root / "usr" / "bin").glob("python3.[0-9][0-9]")
    (root / "usr" / "bin" / "python3").symlink_to(python.name)
    write(root / "var" / "lib" / "dpkg" / "status", "\n".join(package(path) for path in sorted(archives.glob("*.deb"))))


def download(folder: Path) -> None:
    """Get the packages whose dependencies stay away, from where mmdebstrap gets the others."""
    environment = {**os.environ, "APT_CONFIG": os.environ["MMDEBSTRAP_APT_CONFIG"]}
    command = ["apt-get", "--quiet", "--quiet", "download", *WITHOUT_DEPENDENCIES]
    subprocess.run(command, cwd=folder, env=environment, check=True)


def remove(archive: Path, root: Path) -> None:
    """Remove the files of a package, and the package itself."""
    listed = subprocess.check_output(["dpkg-deb", "--fsys-tarfile", str(archive)])
    with tarfile.open(fileobj=io.BytesIO(listed)) as files:
        for member in files:
            if not member.isdir():
                (root / member.name).unlink(missing_ok=True)
    archive.unlink()


def certificates(root: Path) -> None:
    """Write all authorities of Mozilla into one file, where others look for it and OpenSSL finds it."""
    found = sorted((root / "usr" / "share" / "ca-certificates" / "mozilla").glob("*.crt"))
    target = "/etc/ssl/certs/ca-certificates.crt"
    write(root / target.lstrip("/"), "".join(path.read_text(encoding="utf-8") for path in found))
    link = root / "usr" / "lib" / "ssl" / "cert.pem"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def package(archive: Path) -> str:
    """Return a package's entry for the list of packages."""
    fields = subprocess.check_output(["dpkg-deb", "--field", str(archive)], text=True)
    name, rest = fields.split("\n", 1)
    return f"{name}\nStatus: install ok installed\n{rest}"


def write(path: Path, text: str) -> None:
    """Write a file of the root."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
