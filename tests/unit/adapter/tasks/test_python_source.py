"""A converted task is a Python adapter that does what the task does."""

from pathlib import Path

import pytest
import yaml

from maestropy.adapter.tasks import model
from maestropy.adapter.tasks.task_adapter import TaskAdapter
from maestropy.adapter.tooling import lint, loading
from maestropy.cli.adapter import convert
from tests.unit.adapter.tasks.task_documents import DEPLOYMENT, TASK, task


def written(folder: Path) -> Path:
    path = folder / "task.yaml"
    path.write_text(TASK)
    (folder / "adapter-config.yaml").write_text(yaml.safe_dump(DEPLOYMENT))
    return path


def test_the_adapter_has_the_same_task(tmp_path: Path) -> None:
    output = tmp_path / "adapter.py"
    assert convert.act(written(tmp_path), output=output) == 0
    adapter = loading.load(str(output))
    assert isinstance(adapter, TaskAdapter)
    assert adapter.name == "two"
    assert adapter.task == model.of_document(task())
    assert lint.adapter_findings(adapter) == []


def test_files_that_the_task_refers_to_are_part_of_the_adapter(tmp_path: Path) -> None:
    document = task()
    (tmp_path / "map.yaml").write_text(document["resources"][1]["manifest"])
    (tmp_path / "report.yaml").write_text(yaml.safe_dump(document["post"]["payloads"][0]["build"]))
    document["resources"][1]["manifest"] = {"ref": "map.yaml"}
    document["post"]["payloads"][0] = {"name": "report", "build_ref": "report.yaml"}
    path = written(tmp_path)
    path.write_text(yaml.safe_dump(document))
    output = tmp_path / "adapter.py"
    assert convert.act(path, output=output) == 0
    adapter = loading.load(str(output))
    assert isinstance(adapter, TaskAdapter)
    assert adapter.task == model.of_document(task())


def test_every_kind_of_text_survives(tmp_path: Path) -> None:
    texts = ["a\nb\n", 'a"b', "a'b", "a\\b\nc", '"""\n', 'ends with quote\n"', "\\", "tab\t", "ümläut", ""]
    document = task()
    document["post"]["payloads"][0]["build"]["data"] = {"texts": texts, "n": [1, 1.5, True, None, {}]}
    path = written(tmp_path)
    path.write_text(yaml.safe_dump(document, allow_unicode=True))
    output = tmp_path / "adapter.py"
    assert convert.act(path, output=output) == 0
    adapter = loading.load(str(output))
    assert isinstance(adapter, TaskAdapter)
    assert adapter.task.payloads[0].build["data"]["texts"] == texts


def test_the_settings_that_a_task_reads_are_carried_over_and_no_others(tmp_path: Path) -> None:
    document = task()
    document["params"].append({"name": "region", "source": "config.landing.region"})
    document["post"]["payloads"][0]["build"]["data"] = {"version": {"expression": "adapter.version"}}
    deployment = {
        **DEPLOYMENT,
        "adapter": {"name": "two", "version": "1.2.3"},
        "landing": {"region": "east", "password": "secret"},
    }
    path = written(tmp_path)
    path.write_text(yaml.safe_dump(document))
    (tmp_path / "adapter-config.yaml").write_text(yaml.safe_dump(deployment))
    output = tmp_path / "adapter.py"
    assert convert.act(path, output=output) == 0
    assert "secret" not in output.read_text()
    assert '"landing": {"region": "east"}' in output.read_text()
    assert '"adapter": {"version": "1.2.3"}' in output.read_text()
    assert isinstance(loading.load(str(output)), TaskAdapter)


def test_a_task_with_errors_is_not_converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "task.yaml"
    path.write_text('schema_version: "2.1"\nparams: [{name: a}]\n')
    assert convert.act(path, name="a") == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert 'schema_version "2.1" is unsupported; use "2.0"' in output.err
    assert "params[0].source: source is required" in output.err


def test_another_file_is_not_taken_for_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "event.json"
    path.write_text('{"id": "abc"}')
    assert convert.act(path, name="a") == 1
    assert "the file holds no HyperFleet task" in capsys.readouterr().err


def test_what_is_not_carried_over_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = task()
    for resource in document["resources"]:
        del resource["transport"]
    document["resources"][0]["recreate_on_change"] = True
    document["post"]["post_actions"][0]["log"] = {"message": "hello"}
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(document))
    assert convert.act(path, name="two") == 0
    output = capsys.readouterr()
    assert 'adapter = TaskAdapter("two")' in output.out
    assert "resources[0]: recreate_on_change is not carried out" in output.err
    assert "post.post_actions[0]: log is left out" in output.err
