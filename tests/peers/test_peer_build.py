"""Which Go Maestro the tests use: that of a checkout in the cache, or else the pinned one, and they say which."""

import subprocess
from pathlib import Path

import pytest

from tests.peers import peer_build


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "maestropy" / "upstream" / "maestro"
    folder.mkdir(parents=True)
    return folder


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@example.test", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "main.go").write_text("package main\n")
    git(folder, "add", "main.go")
    git(folder, "commit", "-q", "-m", "first")


def build(folder: Path) -> Path:
    program = folder / "maestro"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_program_of_a_checkout_is_used(checkout: Path) -> None:
    commit(checkout)
    program = build(checkout)
    said: list[str] = []
    newest, version = peer_build.newest_maestro(pinned=Path("pinned"), say=said.append)
    assert newest == program
    assert said == [f"Go servers: Maestro {version}, the checkout in {checkout}"]
    assert len(version.split(" of ")[0]) == 12


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        pytest.param("absent", "there is no checkout in", id="no-checkout"),
        pytest.param("not built", "has no program; build it there", id="not-built"),
        pytest.param("no git", "is not a git checkout without changes", id="no-git"),
        pytest.param("changed", "is not a git checkout without changes", id="changed"),
    ],
)
def test_pinned_version_is_used_otherwise(checkout: Path, state: str, problem: str) -> None:
    if state == "absent":
        checkout.rmdir()
    if state in ("not built", "changed"):
        commit(checkout)
    if state in ("no git", "changed"):
        build(checkout)
    if state == "changed":
        (checkout / "main.go").write_text("package other\n")
    said: list[str] = []
    newest, version = peer_build.newest_maestro(pinned=Path("pinned"), say=said.append)
    assert (newest, version) == (Path("pinned"), peer_build.maestro_version())
    assert said[0].startswith(f"Go servers: the pinned Maestro {version}; ")
    assert problem in said[0]
