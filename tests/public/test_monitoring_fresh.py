"""Generated files of monitoring/ are fresh, every alert has its runbook, and the pages name what exists."""

import ast
import json
import re
import runpy
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from maestropy.agent.telemetry.metrics import AgentMetrics
from maestropy.server.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[2]
RULES = ROOT / "monitoring" / "rules" / "maestropy.rules.yaml"
RUNBOOKS = ROOT / "docs" / "runbooks"
GENERATED = runpy.run_path(str(ROOT / "scripts" / "generate_monitoring.py"))["FILES"]
ALERTS = {
    rule["alert"]: rule
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
}
SECTIONS = ["What it means", "What users notice", "First commands", "Remedies", "When it resolves"]


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: path.name)
def test_generated_file_is_fresh(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATED[path](), f"{path.name} is stale: run `make docs`"


def test_no_other_file_is_in_the_folders_of_generated_files() -> None:
    files = {path for path in (ROOT / "monitoring").rglob("*") if path.is_file()}
    assert files - set(GENERATED) == {RULES}


def test_prometheus_rule_has_the_alerts_of_the_rules() -> None:
    written = yaml.safe_load((RULES.parent / "maestropy.prometheusrule.yaml").read_text(encoding="utf-8"))
    assert (written["apiVersion"], written["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert written["spec"] == yaml.safe_load(RULES.read_text(encoding="utf-8"))


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_is_complete(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["for"]
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["description"].endswith(".")
    assert rule["annotations"]["runbook"] == f"docs/runbooks/{alert}.md"


@pytest.mark.parametrize("alert", ALERTS)
def test_runbook_has_every_section_and_three_commands(alert: str) -> None:
    page = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == SECTIONS
    # The page quotes the rule, so that a changed threshold changes the page.
    assert re.sub(r"\s+", " ", ALERTS[alert]["expr"]).strip() in re.sub(r"\s+", " ", page)
    assert f"for {ALERTS[alert]['for']}" in page
    commands = page[page.index("## First commands") : page.index("## Remedies")]
    assert len(re.findall(r"^\$ ", commands, flags=re.MULTILINE)) >= 3, "three commands, each with its output"


def texts_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def metric_names() -> set[str]:
    """Return the names of all series that servers and agents can write."""
    server, agent = CollectorRegistry(), CollectorRegistry()
    Metrics(server)
    AgentMetrics(agent)
    names = {family.name for registry in (server, agent) for family in registry.collect()}
    return names | {f"{name}{suffix}" for name in names for suffix in ("_total", "_bucket", "_sum", "_count")}


@pytest.mark.parametrize("alert", ALERTS)
def test_output_in_runbook_has_our_messages_and_metrics(alert: str) -> None:
    page = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", page, flags=re.DOTALL))
    messages = set(re.findall(r'^[^$\n]*\.py:\d+\] "([^"]+)"', blocks, flags=re.MULTILINE))
    assert messages - texts_of(ROOT / "src" / "maestropy" / "journal" / "phrases.py") == set()
    series = set(re.findall(r"^([a-z_]+)(?:\{[^}]*\})? [0-9.e+-]+$", blocks, flags=re.MULTILINE))
    assert series - metric_names() == set()


def test_page_of_differences_names_log_lines_that_we_write() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    section = page[page.index("## Log lines") : page.index("## MQTT")]
    ours = [row.split("|")[3] for row in section.splitlines() if row.startswith("| ")][1:]
    phrases = {found for cell in ours for found in re.findall(r"`([^`]+ [^`]+)`", cell)}
    source = ROOT / "src" / "maestropy"
    written = texts_of(source / "journal" / "phrases.py")
    listeners = texts_of(source / "server" / "runtime" / "listeners.py")
    assert phrases
    assert {phrase for phrase in phrases - written if phrase.removeprefix("Serving ") not in listeners} == set()


@pytest.mark.parametrize("kind", ["server", "agent"])
def test_page_of_differences_names_the_metrics_that_only_we_have(kind: str) -> None:
    registry = CollectorRegistry()
    (Metrics if kind == "server" else AgentMetrics)(registry)
    declared = {family.name for family in registry.collect()}
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith(f"| metrics of the {kind} |")]
    named = {name.removesuffix("_total") for name in re.findall(r"`(\w+)`", line)}
    assert named <= declared
    assert {name for name in declared if name.startswith("maestropy_")} <= named


def test_there_is_no_runbook_without_alert() -> None:
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == set(ALERTS)


def test_pages_list_every_alert_and_dashboard() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for alert in ALERTS:
        assert f"(runbooks/{alert}.md)" in page
        assert f"runbooks/{alert}.md" in navigation
    for path in GENERATED:
        assert path.name in page


@pytest.mark.parametrize("path", [path for path in GENERATED if path.suffix == ".json"], ids=lambda path: path.name)
def test_panels_of_dashboard_do_not_overlap(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
