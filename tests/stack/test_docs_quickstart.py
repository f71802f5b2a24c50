"""The commands of the quick start, run on a real fleet, print what the page shows."""

from pathlib import Path

import pytest

from maestropy.testing import running_fleet
from scripts import play_page

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    with running_fleet(folder=tmp_path / "fleet") as fleet:
        reader = play_page.Reader(tmp_path / "home", environ=play_page.this_installation())
        try:
            keep = f"maestro config set-env local --rest-url {fleet.api_url} --grpc-server-address {fleet.grpc_url}"
            keep += f" --db-dsn '{fleet.inner.dsn}' --mgmt-kubeconfig cluster1={fleet.cluster().kubeconfig}"
            reader.run(keep)
            outputs = list(play_page.play(PAGE.read_text(encoding="utf-8"), reader))
        finally:
            reader.close()
    assert len(outputs) > 8
    for command, shown, printed in outputs:
        assert play_page.plain(printed) == play_page.plain(shown), command
