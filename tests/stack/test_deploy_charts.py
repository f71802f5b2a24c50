"""What is installed on Kubernetes, as far as it can be checked without Helm and containers.

tests/peers/charts renders and plays the charts, tests/peers/image builds and runs the image.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

import maestropy
from tests.upstream import installation

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "charts"
NAMES = ("maestro-server", "maestro-agent")


def load(chart: str, file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHARTS / chart / file).read_text())
    return found


def errors(chart: str, values: dict[str, Any]) -> list[str]:
    schema = json.loads((CHARTS / chart / "values.schema.json").read_text())
    return [f"{each.instance_path}: {each.message}" for each in jsonschema_rs.validator_for(schema).iter_errors(values)]


@pytest.mark.parametrize("chart", NAMES)
@pytest.mark.parametrize("file", ["values.yaml", "values-production.yaml"])
def test_schema_takes_the_values_of_the_chart(chart: str, file: str) -> None:
    assert errors(chart, load(chart, file)) == []


@pytest.mark.parametrize("broker", ["grpc", "mqtt", "pubsub"])
def test_schema_takes_what_the_go_charts_are_tested_with(broker: str) -> None:
    image = {"image": installation.image("go")}
    assert errors("maestro-server", {**installation.server_values(broker, tls=True), **image}) == []
    assert errors("maestro-agent", {**installation.agent_values(broker, "cluster1", tls=True), **image}) == []


@pytest.mark.parametrize("chart", NAMES)
def test_schema_knows_every_value_and_no_other(chart: str) -> None:
    def check(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        properties = schema.get("properties")
        if properties is None:
            return
        assert schema["additionalProperties"] is False, path
        known = set(properties) - {"nameOverride", "fullnameOverride", "global"}
        assert known == set(values) or path.endswith(".topics"), path
        for name, value in values.items():
            if isinstance(value, dict):
                check(properties[name], value, f"{path}.{name}")

    check(json.loads((CHARTS / chart / "values.schema.json").read_text()), load(chart, "values.yaml"), "")


@pytest.mark.parametrize("chart", NAMES)
def test_chart_has_the_version_of_the_program(chart: str) -> None:
    about = load(chart, "Chart.yaml")
    assert (about["version"], about["appVersion"]) == (maestropy.__version__, maestropy.__version__)


def test_both_charts_create_subscriptions_alike() -> None:
    server, agent = ((CHARTS / chart / "files" / "pubsub.py").read_text() for chart in NAMES)
    assert server == agent


def test_the_definition_is_the_one_the_agent_installs() -> None:
    name = "appliedmanifestworks.yaml"
    installed = ROOT / "src" / "maestropy" / "agent" / "crds" / name
    assert (CHARTS / "maestro-agent" / "files" / name).read_text() == installed.read_text()


def test_image_has_neither_embedded_database_nor_sandbox() -> None:
    recipe = (ROOT / "deploy" / "Containerfile").read_text()
    (extras,) = [line.partition("=")[2] for line in recipe.splitlines() if line.startswith("ARG EXTRAS=")]
    assert extras == "server,agent,pubsub,azure"
    assert f"ARG VERSION={maestropy.__version__}" in recipe
    installed = (ROOT / "deploy" / "image" / "install.py").read_text()
    assert 'NOT_SERVED = ("sandbox", "testing")' in installed
    optional = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    holders = {name for name, needs in optional.items() if any("pgserver" in need for need in needs)}
    assert holders == {"embedded"}


WITHOUT_SANDBOX = """
import sys
sys.modules["maestropy.sandbox"] = None
sys.modules["maestropy.testing"] = None
from maestropy.cli.main import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        pytest.param(["server", "--help"], 0, "--server-hostname", id="server-help"),
        pytest.param(["agent", "--help"], 0, "--consumer-name", id="agent-help"),
        pytest.param(["server", "--db-dsn=postgresql://u@127.0.0.1:1/d"], 1, "refused", id="server"),
        pytest.param(["migration", "--db-dsn=postgresql://u@127.0.0.1:1/d"], 1, "cannot be migrated", id="migration"),
        pytest.param(["server"], 1, "not part of this installation", id="server-without-database"),
        pytest.param(["up"], 1, "not part of this installation", id="up"),
    ],
)
def test_commands_of_the_image_need_no_sandbox(words: list[str], code: int, text: str, tmp_path: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAESTRO_")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_SANDBOX, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        cwd=tmp_path,
        env={**environ, "HOME": str(tmp_path)},
    )
    assert (done.returncode, text in done.stdout + done.stderr) == (code, True), done.stderr


def test_runbook_of_servers_that_are_gone_shows_what_the_migration_of_a_pod_says(tmp_path: Path) -> None:
    told = {"db.host": "127.0.0.1", "db.port": "1", "db.user": "maestro", "db.password": "", "db.name": "maestro"}
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    flags = [f"--{name.replace('.', '-')}-file={tmp_path / name}" for name in told]
    done = subprocess.run(
        [sys.executable, "-m", "maestropy.cli.main", "migration", *flags, "--db-sslmode=require"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    page = (ROOT / "docs" / "runbooks" / "MaestroServersGone.md").read_text()
    assert f"--tail=1\n{done.stderr.replace('127.0.0.1:1/', 'db.maestro:5432/')}```" in page
