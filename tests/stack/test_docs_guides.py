"""The guides for operators print what they show, on a PostgreSQL and a Kubernetes API of their own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import play_page
from tests.stack import guides

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def shell() -> Iterator[play_page.Reader]:
    # Not below pytest's own folder: every other run that starts as root closes that to PostgreSQL's user.
    with tempfile.TemporaryDirectory(prefix="guides-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with guides.reader(Path(folder)) as reader:
            yield reader


@pytest.mark.parametrize("name", ["backup.md", "certificates.md", "disaster-recovery.md", "upgrade.md"])
def test_every_command_prints_what_the_guide_shows(name: str, shell: play_page.Reader) -> None:
    if name == "upgrade.md" and not guides.has_former_version():
        pytest.skip(f"the program of commit {guides.FORMER} is needed: git fetch --unshallow")
    guides.assert_played(DOCS / name, shell)
