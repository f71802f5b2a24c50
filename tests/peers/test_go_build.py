"""The builder of Go programs, judged with a compiler of our own: a script that notes when it is asked to build."""

from pathlib import Path

import pytest

from tests.peers import go_build

COMPILER = """#!/bin/sh
if [ "$1" = version ]; then echo "go version {version}"; exit 0; fi
echo "$@" >> {calls}
while [ "$1" != -o ]; do shift; done
echo "go: downloading example.test/module v1.0.0" >&2
{outcome}
"""
SUCCEEDS = 'echo program > "$2/program"'
FAILS = 'echo "dial tcp: no such host" >&2; exit 1'


class Workshop:
    """A module, a cache and a compiler, all of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.calls = folder / "calls"
        self.calls.touch()
        self.module = folder / "module"
        self.module.mkdir()
        (self.module / "go.mod").write_text("module test\n\nrequire example.test/module v1.0.0\n")
        self.install()

    def install(self, *, version: str = "go1.25.0", outcome: str = SUCCEEDS) -> None:
        go = self.folder / "go"
        go.write_text(COMPILER.format(version=version, calls=self.calls, outcome=outcome))
        go.chmod(0o755)

    def built(self, *flags: str) -> Path:
        recipe = go_build.Recipe(
            title="the program",
            duration="a moment",
            module=self.module,
            packages=("./cmd/...",),
            place="workshop",
            flags=flags,
        )
        return go_build.built(recipe, self.said.append)

    @property
    def builds(self) -> int:
        return len(self.calls.read_text().splitlines())


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Workshop(tmp_path)


def test_builds_once_and_says_so(workshop: Workshop) -> None:
    folder = workshop.built()
    assert (folder / "program").read_text() == "program\n"
    assert workshop.built() == folder
    assert workshop.builds == 1
    assert workshop.said[0] == f"building the program into {folder} (once; a moment)"


def test_builds_again_when_something_it_was_made_of_changed(workshop: Workshop) -> None:
    folders = [workshop.built(), workshop.built("-race")]
    (workshop.module / "go.mod").write_text("module other\n")
    folders.append(workshop.built())
    workshop.install(version="go1.26.0")
    folders.append(workshop.built())
    assert len(set(folders)) == workshop.builds == 4


def test_a_failed_build_tells_why_and_leaves_nothing_to_be_found(workshop: Workshop) -> None:
    workshop.install(outcome=FAILS)
    with pytest.raises(go_build.Unavailable, match=r"needs the Go module proxy\): dial tcp: no such host$"):
        workshop.built()
    workshop.install()
    assert (workshop.built() / "program").exists()


def test_without_go_the_reason_is_go(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(go_build.Unavailable, match=r"Go 1\.26 or newer is needed to build the program"):
        workshop.built()


def test_reads_the_pinned_version(workshop: Workshop) -> None:
    assert go_build.pinned_version(workshop.module, "example.test/module") == "v1.0.0"
