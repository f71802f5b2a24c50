"""The public functions of `maestropy.trace`: their names, their import, and the examples in the docs."""

import asyncio
import contextlib
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from maestropy import trace
from maestropy.trace import library
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.exit_codes import Exit

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DOCUMENTED = re.compile(r"print\(.*\)  # -> (.+)$", re.MULTILINE)
BUNDLE = "0243d197-f374-5370-b866-6d9272063084"


@pytest.fixture
def example_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directories that the examples read."""
    (tmp_path / "dump").mkdir()
    for name in ("bundles", "applied_outer", "manifestworks"):
        shutil.copy(DATA / f"trace_work_{name}.json", tmp_path / "dump" / f"{name}.json")
    shutil.copytree(DATA / "trace_hcp", tmp_path / "documents")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", ["trace-work.md", "trace-hcp.md"])
def test_examples_in_docs_print_their_documented_output(page: str, example_directory: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert blocks
    for block in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page, "exec"), {"__name__": "example"})
        assert printed.getvalue().splitlines() == _DOCUMENTED.findall(block)


@pytest.mark.parametrize("name", ["work", "hcp"])
def test_function_keeps_its_name_whatever_is_imported_first(name: str) -> None:
    program = f"import maestropy.trace.{name}.query; from maestropy import trace; assert callable(trace.{name})"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_import_is_cheap() -> None:
    heavy = "{'asyncio', 'orjson', 'httpx', 'asyncpg'}"
    program = f"import sys; from maestropy import trace; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'telepathy'"):
        _ = trace.telepathy


def test_exactly_one_identifier(example_directory: Path) -> None:
    access = trace.WorkAccess(offline=example_directory / "dump")
    with pytest.raises(InvalidArguments, match="given are --resource-id, --work-name"):
        trace.work(access=access, resource_id="a", work_name="b")
    with pytest.raises(InvalidArguments, match="none is given"):
        trace.work(access=access)


def test_within_an_event_loop(example_directory: Path) -> None:
    access = trace.WorkAccess(offline=example_directory / "dump")
    report = asyncio.run(library.work(access=access, resource_ids=[BUNDLE, "missing"]))
    assert [work.verdict.code for work in report.works][1] == "MW-010"
    assert report.exit in {Exit.PROBLEM, Exit.NOT_FOUND}


@pytest.mark.parametrize(
    ("access", "flags"),
    [
        pytest.param({"environment": "prod", "svc_context": "svc"}, "--env prod", id="environment"),
        pytest.param({"offline": Path("my dump")}, "--offline 'my dump'", id="offline"),
        pytest.param(
            {"svc_context": "svc", "mgmt_contexts": ("c1=one", "c2=two")},
            "--svc-context svc --mgmt-context c1=one --mgmt-context c2=two",
            id="contexts",
        ),
        pytest.param(
            {"db_dsn": "postgresql://u@h/d", "no_cluster": True}, "--db-dsn postgresql://u@h/d --no-cluster", id="dsn"
        ),
        pytest.param({"db_dsn": "postgresql://u:hunter2@h/d"}, '--db-dsn "$MAESTRO_DB_DSN"', id="password"),
        pytest.param({}, "", id="nothing-named"),
    ],
)
def test_flags_reach_the_same_systems_without_a_password(access: dict[str, object], flags: str) -> None:
    assert trace.WorkAccess(**access).flags == flags  # type: ignore[arg-type]
