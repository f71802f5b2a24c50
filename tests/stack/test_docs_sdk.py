"""Every Python snippet of the SDK guide and the README runs against a real fleet and prints the documented output."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from maestropy.testing import RunningFleet, running_fleet

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = re.compile(r"print\(.*\)  # -> (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    with running_fleet(folder=tmp_path_factory.mktemp("fleet")) as running:
        yield running


@pytest.mark.parametrize("page", ["docs/sdk.md", "README.md"])
def test_every_snippet_prints_its_documented_output(
    page: str, fleet: RunningFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAESTRO_API_URL", fleet.api_url)
    monkeypatch.setenv("MAESTRO_GRPC_URL", fleet.grpc_url)
    text = (ROOT / page).read_text(encoding="utf-8")
    # The addresses of `maestro up`.
    text = text.replace('"http://127.0.0.1:8000"', f'"{fleet.api_url}"').replace(
        '"127.0.0.1:8090"', f'"{fleet.grpc_url}"'
    )
    blocks = list(_BLOCK.finditer(text))
    assert blocks
    namespace: dict[str, Any] = {"__name__": "guide"}
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        # The empty lines make a traceback point at the line of the page.
        code = compile("\n" * line + block[1], page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        for documented in _DOCUMENTED.findall(block[1]):
            assert documented.removesuffix(" ...") in printed.getvalue(), f"{page}:{line}"
