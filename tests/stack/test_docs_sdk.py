"""Every Python snippet of the SDK guide runs, in order, against a real fleet, and prints what it promises."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from pymaestro.testing import running_fleet

GUIDE = Path(__file__).parents[2] / "docs" / "sdk.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROMISE = re.compile(r"print\(.*\)  # -> (.+)$", re.MULTILINE)


def test_every_snippet_runs_and_keeps_its_promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_fleet(folder=tmp_path) as fleet:
        monkeypatch.setenv("MAESTRO_API_URL", fleet.api_url)
        monkeypatch.setenv("MAESTRO_GRPC_URL", fleet.grpc_url)
        run_all()


def run_all() -> None:
    text = GUIDE.read_text()
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) > 10
    namespace: dict[str, Any] = {"__name__": "guide"}
    for block in blocks:
        line = text[: block.start()].count("\n") + 1
        # The empty lines make a traceback point at the line of the guide.
        code = compile("\n" * line + block[1], str(GUIDE), "exec")
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(code, namespace)
        for promised in _PROMISE.findall(block[1]):
            assert promised.removesuffix(" ...") in told.getvalue(), f"{GUIDE.name}:{line}"
