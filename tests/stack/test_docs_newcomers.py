"""The pages with the first steps print what they show, from a clone, in a new home directory and without variables."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.sandbox import ports
from scripts import play_page

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

DOCS = Path(__file__).parents[2] / "docs"
# The ports that a page names may be in use on this machine.
PORTS = ("8000", "8080", "8083", "8090", "8091", "8443")


def assert_played(page: Path, reader: play_page.Reader) -> None:
    """Run the commands of a page; the first one that prints something else than what the page shows fails."""
    played = 0
    for command, shown, printed in play_page.play(page.read_text(encoding="utf-8"), reader):
        same = play_page.plain(printed) == play_page.plain(shown)
        assert same, f"{page.name}: $ {command}\n{printed}\nthe page shows:\n{shown}\nrun scripts/play_page.py"
        played += 1
    assert played > 4


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with a clone, in which the page about the installation was played."""
    home = tmp_path_factory.mktemp("newcomer") / "home"
    play_page.copy_tree(home / "maestropy")
    reader = play_page.Reader(home, environ=play_page.package_index())
    try:
        assert_played(play_page.INSTALL, reader)
    finally:
        reader.close()
    return home


@pytest.fixture
def reader(installed: Path, tmp_path: Path) -> Iterator[play_page.Reader]:
    """A shell in a new home directory, with the installation of the first one."""
    free = dict(zip(PORTS, map(str, ports.free(len(PORTS))), strict=True))
    shell = play_page.Reader(tmp_path / "home", ports=free)
    try:
        shell.run(f"source {installed}/maestropy/.venv/bin/activate")
        yield shell
    finally:
        shell.close()


@pytest.mark.parametrize("name", ["start-adapter-developer.md", "start-on-call.md", "start-operator.md"])
def test_every_command_prints_what_the_page_shows(name: str, reader: play_page.Reader) -> None:
    assert_played(DOCS / name, reader)
