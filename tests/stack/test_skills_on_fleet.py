"""Every command of the skills is run against a real fleet: `maestro up` with two clusters.

Commands of `trace-resource-request` are run by `test_skill_trace_request`, those of `check-mqtt-broker` by
`tests/peers/brokers/test_broker_state.py`.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from maestropy.cli import main
from scripts import record_runs
from tests.skill_commands import SKILLS, commands, filled

pytestmark = pytest.mark.long

ELSEWHERE = {"trace-resource-request", "check-mqtt-broker"}
WORK = """
apiVersion: v1
kind: ConfigMap
metadata: {name: hello, namespace: default}
"""
# Agents of this fleet have no port and no file of the broker; an archive has notes on what was not asked for.
CODES = {("agent", "status"): {1}, ("check", "agent"): {0, 1}, ("diagnose", "analyze"): {0, 6}}


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.call(arguments) == 0, arguments
    return capsys.readouterr().out


def test_every_command_runs_on_a_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with record_runs.up(tmp_path):
        found = yaml.safe_load(next((tmp_path / "config").rglob("*.yaml")).read_text(encoding="utf-8"))
        stored = next(iter(found["environments"].values()))
        Path("hello.yaml").write_text(WORK, encoding="utf-8")
        output(
            capsys, "resourcebundle", "apply", "--consumer", "cluster1", "--name", "hello", "--wait", "-f", "hello.yaml"
        )
        work = json.loads(output(capsys, "resourcebundle", "list", "-o", "json"))
        words = {
            "ID": (work["items"] if isinstance(work, dict) else work)[0]["id"],
            "NAME": "hello",
            "KIND/NS/NAME": "ConfigMap/default/hello",
            "CONSUMER": "cluster1",
            "LOGS": stored["logs"],
            "DSN": stored["db-dsn"],
            "HEALTH_URL": stored["health-url"],
            "PORT": stored["health-url"].rpartition(":")[2],
            "GRPC_URL": stored["grpc-server-address"],
            "AGENT_URL": "https://127.0.0.1:1",
            "REPORT": "report.html",
        }
        monkeypatch.setenv("KUBECONFIG", stored["mgmt-kubeconfig"].split(",")[0].partition("=")[2])
        count = 0
        for folder in sorted(SKILLS.iterdir()):
            if folder.name in ELSEWHERE or not folder.is_dir():
                continue
            for command in commands(folder.name):
                # The environment has the access that flags of a skill stand for.
                plain = command.replace("--svc-context SVC --mgmt-context MGMT", "")
                arguments = filled(plain, {**words, "ARCHIVE": f"{folder.name}.tar.zst"})
                code = main.call(arguments)
                out, trouble = capsys.readouterr()
                allowed = CODES.get((arguments[0], arguments[1]), {0})
                assert code in allowed, (folder.name, command, code, out, trouble)
                assert "Traceback" not in out + trouble
                count += 1
        assert count > 30
        assert Path("report.html").stat().st_size > 1000
    assert os.environ.get("DATA") is None


def test_commands_elsewhere_are_run_elsewhere() -> None:
    here = Path(__file__).parents[1]
    for name in ELSEWHERE:
        tests = [here / "stack" / "test_skill_trace_request.py", here / "peers" / "brokers" / "test_broker_state.py"]
        assert any(name in path.read_text(encoding="utf-8") for path in tests), name
