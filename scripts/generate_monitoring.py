"""Write the generated files of monitoring/: the Grafana dashboards, and the alerts as a PrometheusRule.

`make docs` runs it. `tests/public/test_monitoring_fresh.py` fails when a file differs from the output of this script.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.dashboards import DASHBOARDS, as_json

ROOT = Path(__file__).parents[1]
MONITORING = ROOT / "monitoring"
RULES = MONITORING / "rules" / "maestropy.rules.yaml"

_OBJECT = """\
# Generated from maestropy.rules.yaml by `make docs`. A Prometheus may select rules by their labels: add them.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: maestropy
  labels:
    app.kubernetes.io/name: maestropy
spec:
"""


def prometheus_rule() -> str:
    """Return the alerts as a PrometheusRule."""
    rules = RULES.read_text(encoding="utf-8")
    groups = rules[rules.index("groups:") :]
    return _OBJECT + "".join(f"  {line}\n" for line in groups.splitlines())


FILES: dict[Path, Callable[[], str]] = {
    MONITORING / "rules" / "maestropy.prometheusrule.yaml": prometheus_rule,
    **{MONITORING / "dashboards" / f"{dashboard.uid}.json": partial(as_json, dashboard) for dashboard in DASHBOARDS},
}


def main() -> None:
    """Write all files."""
    for path, content in FILES.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content(), encoding="utf-8")


if __name__ == "__main__":
    main()
