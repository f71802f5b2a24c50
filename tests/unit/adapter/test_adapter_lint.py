import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from adapter_samples import MAP

from maestropy.adapter import lint, loading, scaffold
from maestropy.adapter.definition import Adapter
from maestropy.adapter.errors import BadAdapter, UnknownKind
from maestropy.adapter.wish import Reading, Wish
from maestropy.sdk.work import Work

EXAMPLES = Path(__file__).parents[3] / "examples"
TURNS = itertools.count()
READ = lambda _: Reading(available=True)  # noqa: E731 - a reading for every table row


def adapter_for(answer: Any) -> Adapter:
    found = Adapter("a")
    found.reconciles("Cluster")(lambda _, cluster: answer(cluster))
    return found


def rules(found: list[lint.Finding]) -> list[str]:
    return [each.rule for each in found]


def good(cluster: Any) -> Work:
    return Work(f"w-{cluster.id}").add(MAP, feedback={"status": ".status"})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(lambda c: Wish(good(c), read=READ), [], id="good"),
        pytest.param(lambda _: Reading(available=True), [], id="wants-nothing"),
        pytest.param(good, ["no-read"], id="reads-nothing"),
        pytest.param(lambda c: Wish(Work(f"w-{c.id}").add(MAP), read=READ), ["no-feedback"], id="no-feedback"),
        pytest.param(
            lambda c: Wish(Work(f"w-{c.id}").add(MAP, feedback={"s": ".s"}, resource="configmap"), read=READ),
            ["singular"],
            id="singular",
        ),
        pytest.param(
            lambda c: Wish(Work(f"W_{c.id}").add(MAP, feedback={"s": ".s"}), read=READ), ["invalid"], id="name"
        ),
        pytest.param(lambda _: Wish(Work("w").add(MAP, feedback={"s": ".s"}), read=READ), ["names"], id="shared-name"),
        pytest.param(lambda c: Wish([good(c), good(c)], read=READ), ["names"], id="one-name-twice"),
        pytest.param(
            lambda c: Wish(good(c).with_labels({"turn": str(next(TURNS))}), read=READ), ["unsteady"], id="unsteady"
        ),
        pytest.param(lambda c: c.spec["release"], ["sample"], id="needs-a-sample"),
        pytest.param(lambda _: "text", ["unusable"], id="no-wish"),
    ],
)
def test_adapters(answer: Any, expected: list[str]) -> None:
    assert rules(lint.adapter_findings(adapter_for(answer))) == expected


def test_an_adapter_without_a_function() -> None:
    assert rules(lint.adapter_findings(Adapter("a"))) == ["no-function"]


def test_a_sample_that_fails_is_an_error() -> None:
    found = lint.adapter_findings(adapter_for(lambda c: c.spec["release"]), samples=[{"kind": "Cluster", "spec": {}}])
    assert rules(found) == ["fails"]


WORK = """\
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata: {name: w, annotations: {hyperfleet.io/generation: "5"}}
spec:
  workload:
    manifests:
      - apiVersion: hypershift.openshift.io/v1beta1
        kind: HostedCluster
        metadata: {name: c, namespace: clusters, annotations: {hyperfleet.io/generation: "5"}}
  manifestConfigs:
    - resourceIdentifier: {group: hypershift.openshift.io, resource: hostedclusters, name: c, namespace: clusters}
      feedbackRules: [{type: JSONPaths, jsonPaths: [{name: status, path: .status}]}]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(WORK, [], id="good"),
        pytest.param(WORK.replace("hostedclusters", "hostedcluster"), ["singular"], id="singular-resource"),
        pytest.param(
            WORK.replace("name: c, namespace: clusters}\n      f", "name: d}\n      f"), ["no-manifest"], id="who"
        ),
        pytest.param(
            WORK.replace('clusters, annotations: {hyperfleet.io/generation: "5"}', "clusters"), ["generation"]
        ),
        pytest.param(WORK.replace('"5"}}\nspec', "5}}\nspec"), ["generation"], id="generation-is-a-number"),
        pytest.param(WORK.replace("jsonPaths:", "jsonPath:"), ["wrong-name"], id="json-path"),
        pytest.param(
            WORK.replace("feedbackRules:", "feedbackRule:"), ["wrong-name", "no-feedback"], id="feedback-rule"
        ),
        pytest.param("post:\n  method: POST\n", ["task"], id="task-posts"),
        pytest.param("observed_generation: '5'\n", ["task"], id="task-text-generation"),
        pytest.param("when: '!adapter.resourcesSkipped'\n", ["task"], id="task-held-back"),
        pytest.param("a: [", ["unreadable"], id="no-yaml"),
    ],
)
def test_documents(tmp_path: Path, text: str, expected: list[str]) -> None:
    path = tmp_path / "document.yaml"
    path.write_text(text)
    assert rules(lint.document_findings(path)) == expected


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("nowhere.py", "there is no file nowhere.py"),
        ("no.such.module", "no.such.module is neither a file nor a module"),
        (str(EXAMPLES), "there is no adapter.py in"),
        (f"{EXAMPLES}/hosted_cluster.py:other", "has no adapter 'other'; it has: adapter"),
    ],
)
def test_an_adapter_that_is_not_there(where: str, told: str) -> None:
    with pytest.raises(BadAdapter) as raised:
        loading.load(where)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [("x = 1\n", "has no adapter"), ("x = (\n", "line 1"), ("\nimport nothing_there\n", "line 2")],
    ids=["none", "syntax", "import"],
)
def test_a_file_that_is_no_adapter(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(BadAdapter) as raised:
        loading.load(str(path))
    assert told in str(raised.value)


def test_the_page_lists_every_rule() -> None:
    known = set(re.findall(r'_(?:error|warning)\(\s*"([\w-]+)"', Path(lint.__file__).read_text()))
    page = (EXAMPLES.parent / "docs" / "write-an-adapter.md").read_text()
    table = page.partition("## What lint finds")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([\w-]+)`", "".join(rows))) == known


def test_an_adapter_knows_its_kinds() -> None:
    found = adapter_for(good)
    assert found.handler("cluster") is found.handler("Cluster")
    with pytest.raises(UnknownKind, match="it has some for: Cluster"):
        found.handler("NodePool")
    with pytest.raises(BadAdapter, match="two functions for Cluster"):
        found.reconciles("Cluster")(good)
    with pytest.raises(BadAdapter, match="the function for NodePool is async"):
        found.reconciles("NodePool")(_asynchronous)
    with pytest.raises(BadAdapter, match="the adapter's name is 'A B'"):
        Adapter("A B")
    with pytest.raises(BadAdapter, match="the adapter's name is"):
        scaffold.files("A B")


async def _asynchronous(*_: Any) -> Any:
    return None
