from pathlib import Path

from maestropy.cli.server.run import previous_data


def test_database_of_the_former_name_is_mentioned_once(tmp_path: Path) -> None:
    current = tmp_path / "maestropy"
    assert previous_data(current) == ""
    (tmp_path / "pymaestro").mkdir()
    assert f"move that directory to {current}" in previous_data(current)
    assert previous_data(tmp_path / "elsewhere") == ""
    current.mkdir()
    assert previous_data(current) == ""
