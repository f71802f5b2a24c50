"""Every command of the skill is run, on logs with known results and a simulated API server."""

import asyncio
import re
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from maestropy.cli import main
from maestropy.store.dsn import Dsn
from tests.stack.log_api import LogApi, kubeconfig, serving
from tests.trace_request_logs import BASE, LoggedRequest, write

SKILL = Path(__file__).parents[2] / "skills" / "trace-resource-request"
PAGES = ("SKILL.md", "references/logs.md", "references/stages.md", "references/errors.md")
STORY = LoggedRequest(work="nginx")
UPDATE = LoggedRequest(work="nginx", action="update", version=2, at=BASE + 60)


def commands() -> list[tuple[str, str]]:
    """Return (page, command) of every fenced line and every code span that calls maestro."""
    found = []
    for page in PAGES:
        text = (SKILL / page).read_text(encoding="utf-8")
        fenced = re.findall(r"^ *```bash\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        lines = [line.strip() for block in fenced for line in block.splitlines()]
        lines += re.findall(r"`(maestro trace [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        found += [(page, line) for line in dict.fromkeys(lines)]
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Run an API server in a thread, and return the kubeconfig that leads to it."""
    folder = tmp_path_factory.mktemp("skill")
    is_ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        api = LogApi()
        api.write(STORY)
        async with serving(api):
            kubeconfig(folder / "config", api)
            is_ready.set()
            while not stop.is_set():
                await asyncio.sleep(0.05)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert is_ready.wait(60)
    yield folder / "config"
    stop.set()
    thread.join(30)


def test_skill_names_commands() -> None:
    pages = {page for page, _ in commands()}
    assert pages == {"SKILL.md", "references/logs.md", "references/errors.md"}
    assert len(commands()) > 25


@pytest.mark.parametrize(("page", "command"), commands())
def test_skill_command_runs(
    page: str,
    command: str,
    cluster: Path,
    database: Dsn,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs = write(tmp_path / "logs", [STORY, UPDATE])
    dsn = f"postgresql://{database.user}@/{database.database}?host={database.host}"
    words = {
        "LOGS": str(logs),
        "ID": STORY.resource,
        "NAME": STORY.work,
        "SVC": "svc",
        "MGMT": "mgmt",
        "DSN": dsn,
        "SENTENCE": "Maestro agent does not handle the spec request",
        "10m": "1s",  # nobody waits that long here
    }
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster))
    parts = [words.get(part, part) for part in shlex.split(command)]
    while "=" in parts[0]:
        name, _, value = parts.pop(0).partition("=")
        monkeypatch.setenv(name, words.get(value, value))
    assert parts.pop(0) == "maestro"
    if parts[:2] == ["trace", "work"]:
        parts += ["--db-dsn", dsn, "--no-cluster"]
    code = main.call(parts)
    out, trouble = capsys.readouterr()
    # Nothing here is wrong, so what is traced is well; a work that this database does not know is not found.
    assert code == (4 if parts[:2] == ["trace", "work"] else 0), (page, out, trouble)
    assert out or "--follow" in parts
    assert "Traceback" not in out + trouble


def test_skill_pages_name_all_stages_errors_and_variables() -> None:
    from maestropy.trace.findings.codes import CODES
    from maestropy.trace.stages import STAGES

    errors = (SKILL / "references" / "errors.md").read_text(encoding="utf-8")
    stages = (SKILL / "references" / "stages.md").read_text(encoding="utf-8")
    for number, (_, name, sentence) in STAGES.items():
        assert f"| {number} | {name} |" in stages
        assert f"| {sentence} |" in errors
    named = set(re.findall(r"MT-\d{3}", errors + stages + (SKILL / "references" / "logs.md").read_text("utf-8")))
    assert named <= set(CODES)
    logs = (SKILL / "references" / "logs.md").read_text(encoding="utf-8")
    for variable in ("logs_dir", "svr_log", "agent_log", "work_name", "resource_id", "resource_request"):
        assert f"`{variable}`" in logs
