"""Renders our charts with Helm, for tests."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.peers import kube_build

CHARTS = Path(__file__).parents[3] / "charts"
KUBERNETES = kube_build.VERSION
NAMESPACES = {"maestro-server": "maestro", "maestro-agent": "maestro-agent"}
Manifest = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Helm:
    """The program, and a folder for files of values."""

    program: Path
    folder: Path

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.program), *words], capture_output=True, text=True, check=False)

    def values_file(self, values: Mapping[str, Any]) -> Path:
        path = self.folder / f"values{len(list(self.folder.iterdir()))}.json"
        path.write_text(json.dumps(values))
        return path

    def try_template(self, chart: str, values: Mapping[str, Any], *, presets: Sequence[str] = ()) -> str:
        """Return what Helm says against values; empty if it takes them."""
        return self._template(chart, values, presets=presets).stderr

    def template(self, chart: str, values: Mapping[str, Any], *, presets: Sequence[str] = ()) -> list[Manifest]:
        """Return the objects of a release."""
        done = self._template(chart, values, presets=presets)
        assert done.returncode == 0, done.stderr
        return [each for each in yaml.safe_load_all(done.stdout) if each]

    def _template(
        self, chart: str, values: Mapping[str, Any], *, presets: Sequence[str]
    ) -> subprocess.CompletedProcess[str]:
        files = [*(CHARTS / chart / name for name in presets), self.values_file(values)]
        words = [word for path in files for word in ("--values", str(path))]
        # Helm from its module takes itself for one of Kubernetes 1.20 unless it is told.
        where = ["--namespace", NAMESPACES[chart], "--kube-version", KUBERNETES]
        return self.run("template", chart, str(CHARTS / chart), *where, *words)


def of_kind(manifests: Sequence[Manifest], kind: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def containers(manifests: Sequence[Manifest], name: str) -> list[Manifest]:
    """Return the containers of ours in a Deployment, with the volumes of their pod."""
    pod = of_kind(manifests, "Deployment")[name]["spec"]["template"]["spec"]
    found = [*pod.get("initContainers", ()), *pod["containers"]]
    return [{**each, "volumes": pod["volumes"]} for each in found if each.get("command", [""])[0].endswith("/maestro")]
