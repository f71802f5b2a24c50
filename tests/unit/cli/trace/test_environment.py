"""An environment completes the access options of a trace; the command line wins."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import environments, main
from maestropy.cli.errors import UsageError
from maestropy.cli.trace import environment
from maestropy.cli.trace.environment import EnvironmentChoice
from maestropy.trace.access.options import HcpAccess, ManagementChoice, WorkAccess
from maestropy.trace.hcp.query import System

PROD = """\
current: prod
environments:
  prod:
    svc-context: prod-svc
    mgmt-context: mgmt-1=prod-a, mgmt-2=prod-b
    namespace: maestro-prod
    agent-namespace: agents
  api:
    rest-url: https://maestro.example
    grpc-token-file: /secrets/token
    insecure-skip-verify: true
  strange:
    db: telepathy
"""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "maestropy"
    folder.mkdir()
    (folder / "config.yaml").write_text(PROD)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


SERVICE = {"svc_context": "prod-svc", "namespace": "maestro-prod"}
CLUSTERS = {"mgmt_contexts": ("mgmt-1=prod-a", "mgmt-2=prod-b"), "agent_namespace": "agents"}


def completed(home: dict[str, str], *, env: str = "", config: Path | None = None, **access: Any) -> WorkAccess:
    choice = EnvironmentChoice(env=env, config=config)
    return environment.complete_work_access(WorkAccess(**access), choice, home)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param({}, SERVICE | CLUSTERS, id="no-flags"),
        pytest.param({"env": "prod"}, SERVICE | CLUSTERS, id="by-name"),
        pytest.param({"svc_context": "mine"}, CLUSTERS, id="service-named-by-context"),
        pytest.param({"db_dsn": "postgresql://u@h/d"}, CLUSTERS, id="service-named-by-dsn"),
        pytest.param({"db": "none"}, CLUSTERS, id="no-database"),
        pytest.param({"mgmt_kubeconfigs": ("f",)}, SERVICE, id="clusters-named"),
        pytest.param({"no_cluster": True}, SERVICE, id="no-cluster"),
        pytest.param({"offline": Path("dump")}, {}, id="offline"),
        pytest.param({"env": "api"}, {"rest_url": "https://maestro.example"}, id="another-environment"),
    ],
)
def test_environment_completes_missing_access(
    given: dict[str, Any], added: dict[str, Any], home: dict[str, str]
) -> None:
    access = completed(home, **given)
    expected = {key: value for key, value in {**given, **added}.items() if key != "env"}
    plain = replace(access, environment="", rest_settings={}, flags_beside_environment="")
    assert plain == WorkAccess(**expected)
    assert bool(access.environment) is bool(added)


def test_credentials_belong_to_their_address(home: dict[str, str]) -> None:
    assert completed(home, env="api").rest_settings == {
        "token_file": "/secrets/token",
        "insecure_skip_verify": "true",
    }
    assert completed(home, env="api", rest_url="http://other").rest_settings == {}


def test_flags_name_the_environment_and_what_was_given_beside_it(tmp_path: Path, home: dict[str, str]) -> None:
    access = completed(home, env="prod", db_dsn="postgresql://u@h/d")
    assert access.flags == "--env prod --db-dsn postgresql://u@h/d"
    other = tmp_path / "other.yaml"
    other.write_text("environments: {int: {svc-context: int-svc}}\n")
    assert completed(home, config=other, env="int").flags == f"--env int --config {other}"


def test_no_config_file(tmp_path: Path) -> None:
    assert completed({"XDG_CONFIG_HOME": str(tmp_path)}, svc_context="x") == WorkAccess(svc_context="x")


def test_other_config_file(tmp_path: Path, home: dict[str, str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("environments: {int: {svc-context: int-svc}}\n")
    assert completed(home, config=other, env="int").svc_context == "int-svc"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"config": Path("/nowhere.yaml")}, "--config /nowhere.yaml does not exist", id="no-file"),
        pytest.param({"env": "nobody"}, "is not in", id="unknown-environment"),
        pytest.param(
            {"env": "strange"}, "environments.strange.db is not one of auto, maestro-db", id="unknown-database-access"
        ),
    ],
)
def test_error_names_its_origin(options: dict[str, Any], complaint: str, home: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=complaint):
        completed(home, **options)


@pytest.mark.parametrize("dsn", ["postgresql://u:hunter2@h/d", "host=h password=hunter2"])
def test_password_in_dsn_is_rejected(dsn: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"environments: {{x: {{db-dsn: '{dsn}'}}}}\n")
    with pytest.raises(UsageError, match="db-dsn contains a password"):
        environments.read(path)


def test_trace_settings_are_stored_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    line = "config set-env prod --svc-context svc --mgmt-kubeconfig c1=one.yaml --mgmt-kubeconfig two.yaml"
    assert main.call(line.split()) == 0
    stored = environments.read(tmp_path / "maestropy" / "config.yaml").named["prod"]
    assert stored == {"svc-context": "svc", "mgmt-kubeconfig": f"c1={tmp_path}/one.yaml,{tmp_path}/two.yaml"}
    capsys.readouterr()
    assert main.call(["config", "show", "-o", "json"]) == 0
    assert f'"mgmt-kubeconfig": "c1={tmp_path}/one.yaml' in capsys.readouterr().out
    assert main.call(["config", "set-env", "prod", "--db-dsn", "postgresql://u:hunter2@h/d"]) == 2
    err = capsys.readouterr().err
    assert "--db-dsn contains a password" in err
    assert "hunter2" not in err


HCP = """\
environments:
  prod:
    svc-context: prod-svc
    frontend-url: https://frontend.example
    rest-url: https://maestro.example
    mgmt-context: mgmt-1=prod-a, mgmt-2=prod-b
    mgmt-kubeconfig: /clusters.yaml
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            {},
            {
                "svc_context": "prod-svc",
                "urls": {System.FRONTEND: "https://frontend.example", System.MAESTRO: "https://maestro.example"},
                "mgmt_choices": (
                    ManagementChoice(consumer="mgmt-1", kubeconfig="/clusters.yaml", context="prod-a"),
                    ManagementChoice(consumer="mgmt-2", kubeconfig="/clusters.yaml", context="prod-b"),
                ),
                "environment": "prod",
            },
            id="no-flags",
        ),
        pytest.param(
            {"svc_context": "mine", "mgmt_context": "c"},
            {"svc_context": "mine", "mgmt_context": "c"},
            id="everything-named",
        ),
        pytest.param({"offline": Path("documents")}, {"offline": Path("documents")}, id="offline"),
    ],
)
def test_environment_completes_access_to_an_hcp(
    given: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(HCP)
    choice = EnvironmentChoice(env="prod", config=path)
    assert environment.complete_hcp_access(HcpAccess(**given), choice, {}) == HcpAccess(**expected)
