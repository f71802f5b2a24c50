"""The alerts fire when they should and not otherwise: `promtool test rules` with the shipped rules."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.peers.monitoring.rule_cases import CASES, Case
from tests.peers.prometheus import RULES, promtool

pytestmark = pytest.mark.peers

ALERTS = [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def rule_test(alert: str, case: Case) -> dict[str, object]:
    """Return one test of promtool."""
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": expression,
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
            for minutes, fires in ((case.fires_at, True), (case.quiet_at, False))
            for minute in minutes
        ],
    }


def test_rules_are_valid() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", RULES)


def test_scrape_configuration_of_the_page_is_valid(tmp_path: Path) -> None:
    page = (RULES.parents[2] / "docs" / "monitoring.md").read_text()
    config = page.partition("```yaml\n")[2].partition("```")[0]
    assert config.startswith("scrape_configs:")
    # Debian's Prometheus knows no Kubernetes.
    config = re.sub(r"kubernetes_sd_configs: .*", "static_configs: [{targets: [localhost]}]", config)
    (tmp_path / "prometheus.yaml").write_text(config)
    # Only the syntax: the token is a file of a pod.
    assert "SUCCESS" in promtool("check", "config", "--syntax-only", tmp_path / "prometheus.yaml")


def test_every_alert_has_cases_in_which_it_fires_and_does_not() -> None:
    assert set(CASES) == set(ALERTS)
    for alert, cases in CASES.items():
        assert any(case.fires_at for case in cases), alert
        assert any(case.quiet_at for case in cases), alert


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_fires_when_it_should(alert: str, tmp_path: Path) -> None:
    # Alone: promtool evaluates all rules of a file for every minute, and one case lasts a week.
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    (tmp_path / "rules.yaml").write_text(
        json.dumps({"groups": [{"name": "one", "rules": [rule for rule in rules if rule["alert"] == alert]}]})
    )
    document = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [rule_test(alert, case) for case in CASES[alert]],
    }
    path = tmp_path / "test.yaml"
    path.write_text(json.dumps(document))
    promtool("test", "rules", path)
