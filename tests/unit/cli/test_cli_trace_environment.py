"""What an environment adds to a trace, and what the command line keeps for itself."""

from pathlib import Path
from typing import Any

import pytest

from maestropy.cli import environments, main, trace_environment
from maestropy.cli.failure import UsageError
from maestropy.cli.trace_options import AccessOptions

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
CLUSTERS = {"mgmt_context": ["mgmt-1=prod-a", "mgmt-2=prod-b"], "agent_namespace": "agents"}


@pytest.mark.parametrize(
    ("given", "added"),
    [
        pytest.param({}, SERVICE | CLUSTERS, id="nothing-named"),
        pytest.param({"env": "prod"}, SERVICE | CLUSTERS, id="by-name"),
        pytest.param({"svc_context": "mine"}, CLUSTERS, id="service-named-by-context"),
        pytest.param({"db_dsn": "postgresql://u@h/d"}, CLUSTERS, id="service-named-by-dsn"),
        pytest.param({"db": "none"}, CLUSTERS, id="no-database-wanted"),
        pytest.param({"mgmt_kubeconfig": ["f"]}, SERVICE, id="clusters-named"),
        pytest.param({"no_cluster": True}, SERVICE, id="no-cluster-wanted"),
        pytest.param({"offline": Path("dump")}, {}, id="nobody-is-asked"),
        pytest.param({"env": "api"}, {"rest_url": "https://maestro.example"}, id="another-environment"),
    ],
)
def test_a_side_is_taken_as_a_whole(given: dict[str, Any], added: dict[str, Any], home: dict[str, str]) -> None:
    found = trace_environment.complete(AccessOptions(**given), home)
    assert found.options == AccessOptions(**{**given, **added})
    assert bool(found.name) is bool(added)


def test_credentials_come_with_the_address_they_are_for(home: dict[str, str]) -> None:
    found = trace_environment.complete(AccessOptions(env="api"), home)
    assert found.client == {"token_file": "/secrets/token", "insecure_skip_verify": "true"}
    assert trace_environment.complete(AccessOptions(env="api", rest_url="http://other"), home).client == {}


def test_without_a_file_nothing_is_added(tmp_path: Path) -> None:
    options = AccessOptions(svc_context="x")
    assert trace_environment.complete(options, {"XDG_CONFIG_HOME": str(tmp_path)}).options == options


def test_another_file(tmp_path: Path, home: dict[str, str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text("environments: {int: {svc-context: int-svc}}\n")
    found = trace_environment.complete(AccessOptions(config=other, env="int"), home)
    assert found.options.svc_context == "int-svc"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        pytest.param({"config": Path("/nowhere.yaml")}, "--config /nowhere.yaml does not exist", id="no-file"),
        pytest.param({"env": "nobody"}, "which is no environment", id="no-environment"),
        pytest.param({"env": "strange"}, "environments.strange.db is not one of auto, maestro-db", id="no-such-way"),
    ],
)
def test_mistakes_name_their_place(options: dict[str, Any], complaint: str, home: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=complaint):
        trace_environment.complete(AccessOptions(**options), home)


@pytest.mark.parametrize("dsn", ["postgresql://u:hunter2@h/d", "host=h password=hunter2"])
def test_a_password_is_never_kept(dsn: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"environments: {{x: {{db-dsn: '{dsn}'}}}}\n")
    with pytest.raises(UsageError, match="db-dsn holds a password"):
        environments.read(path)


def test_kept_by_the_command_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    line = "config set-env prod --svc-context svc --mgmt-kubeconfig c1=one.yaml --mgmt-kubeconfig two.yaml"
    assert main.call(line.split()) == 0
    kept = environments.read(tmp_path / "maestropy" / "config.yaml").named["prod"]
    assert kept == {"svc-context": "svc", "mgmt-kubeconfig": f"c1={tmp_path}/one.yaml,{tmp_path}/two.yaml"}
    capsys.readouterr()
    assert main.call(["config", "show", "-o", "json"]) == 0
    assert f'"mgmt-kubeconfig": "c1={tmp_path}/one.yaml' in capsys.readouterr().out
    assert main.call(["config", "set-env", "prod", "--db-dsn", "postgresql://u:hunter2@h/d"]) == 2
    err = capsys.readouterr().err
    assert "--db-dsn holds a password" in err
    assert "hunter2" not in err
