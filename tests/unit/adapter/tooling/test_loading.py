from pathlib import Path

import pytest

from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.tooling import loading

EXAMPLES = Path(__file__).parents[4] / "examples"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        ("no.such.module", "no.such.module is neither a file nor a module"),
        (
            str(EXAMPLES.parent / "README.md"),
            "README.md is not a Python file",
        ),
        (str(EXAMPLES), "there is no adapter.py in"),
        (f"{EXAMPLES}/hosted_cluster.py:other", "has no adapter 'other'; it has: adapter"),
    ],
)
def test_unknown_adapter_reference_is_rejected(reference: str, message: str) -> None:
    with pytest.raises(BadAdapter) as raised:
        loading.load(reference)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no adapter"),
        ("x = (\n", "line 1"),
        ("\nimport nothing_there\n", "line 2"),
        ("import sys\n\nsys.exit(3)\n", "broken.py cannot be imported, line 3 of"),
    ],
    ids=["none", "syntax", "import", "exit"],
)
def test_unusable_adapter_file_is_rejected(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(BadAdapter) as raised:
        loading.load(str(path))
    assert message in str(raised.value)
