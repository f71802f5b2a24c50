"""The command line as a user of kubectl expects it, on a real server with an agent."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import yaml

from maestropy.cli import main
from maestropy.sandbox.server_process import ServerProcess
from tests.shell_completion import SHELLS, Completion
from tests.stack.sdk_live import live_server as live_server

pytestmark = pytest.mark.long


class Terminal:
    """Runs command lines and returns what they print."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.err = ""

    def __call__(self, line: str, *, expect: int = 0) -> str:
        code = main.call(shlex.split(line))
        shown = self._capture.readouterr()
        self.err = shown.err
        assert code == expect, shown.out + shown.err
        assert "Traceback" not in shown.err
        return shown.out


@pytest.fixture
def run(
    live_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Terminal:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MAESTRO_REST_URL", f"http://127.0.0.1:{live_server.ports.rest}")
    monkeypatch.setenv("MAESTRO_GRPC_SERVER_ADDRESS", f"127.0.0.1:{live_server.ports.sources}")
    return Terminal(capsys)


def work(name: str, *, consumer: str = "c1", app: str = "web", value: str = "1") -> dict[str, object]:
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": consumer, "labels": {"app": app}},
        "spec": {"workload": {"manifests": [{**data, "data": {"k": value}}]}},
    }


def write(path: Path, *works: dict[str, object]) -> Path:
    path.write_text(yaml.safe_dump_all(works))
    return path


def test_lists_are_scoped_formatted_and_never_cut_silently(run: Terminal, tmp_path: Path) -> None:
    for consumer in ("c1", "c2", "c3"):
        run(f"consumer create {consumer} --label region=east")
    run("consumer list --size 2")
    assert run.err == "Showing 2 of 3; --all shows all, --page 2 the next page\n"
    assert len(run("consumer list --size 2 --all --no-headers").splitlines()) == 3
    assert run.err == ""
    assert run("consumer list --all -o jsonpath='{.items[*].labels.region}'") == "east east east"

    run(f"resourcebundle apply -f {write(tmp_path / 'a', work('a'), work('b', consumer='c2'))}")
    run(f"resourcebundle apply --grpc-source-id other -f {write(tmp_path / 'o', work('o', app='api'))}")
    names = "--no-headers -o custom-columns=NAME:.metadata.name"
    assert run(f"resourcebundle list {names} --consumer c2") == "b\n"
    assert run(f"resourcebundle list {names} --source other") == "o\n"
    assert run(f"resourcebundle list {names} --consumer c1 -l app=web") == "a\n"
    assert run(f'resourcebundle list {names} --consumer c1 --search "version = 1 or version = 2" --all').split() in (
        ["a", "o"],
        ["o", "a"],
    )
    # An empty list of a consumer that exists is no error; one of an unknown consumer is.
    assert run(f"resourcebundle list {names} --consumer c3") == ""
    assert run("resourcebundle list --consumer c33", expect=1) == ""
    assert run.err.startswith("Error: there is no consumer 'c33'; did you mean c3")
    run("resourcebundle watch --consumer nowhere", expect=1)
    assert run.err == "Error: there is no consumer 'nowhere'; see `maestro consumer list`\n"
    run("resourcebundle list -o jsonpath={", expect=2)


def test_dry_run_prints_and_stores_nothing(run: Terminal, tmp_path: Path) -> None:
    file = write(tmp_path / "two.yaml", work("a"), work("b"))
    assert run(f"resourcebundle apply -f {file} --dry-run=client").count("is valid (client dry run)") == 2
    run(f"resourcebundle apply -f {file} --dry-run=server", expect=1)
    assert "there is no consumer 'c1'" in run.err
    run("consumer create c1")
    would = run(f"resourcebundle apply -f {file} --dry-run=server")
    assert would.count("would be created (server dry run)") == 2
    assert "Name: c1/b" in would
    assert json.loads(run("resourcebundle list -o json"))["total"] == 0

    printed = yaml.safe_load(
        run(f"resourcebundle apply -f {write(tmp_path / 'a', work('a'))} --dry-run=client -o yaml")
    )
    assert (printed["kind"], printed["metadata"]["name"]) == ("ManifestWork", "a")
    # What a dry run prints can be applied; a List too.
    everything = tmp_path / "list.yaml"
    everything.write_text(run(f"resourcebundle apply -f {file} --dry-run=server -o yaml"))
    applied = run(f"resourcebundle apply -f {everything} --wait")
    assert [line for line in applied.splitlines() if line.startswith("Name: ")] == ["Name: c1/a", "Name: c1/b"]
    assert "(c1/b) is applied" in applied
    assert run(f"resourcebundle apply -f {file} --dry-run=server").count("is unchanged") == 2
    changed = write(tmp_path / "changed.yaml", work("a", value="2"))
    assert "would be updated" in run(f"resourcebundle apply -f {changed} --dry-run=server")
    assert run("resourcebundle get c1/a -o jsonpath={.version}") == "1"
    broken = write(
        tmp_path / "broken.yaml", {**work("x"), "spec": {"workload": {"manifests": [{"kind": "ConfigMap"}]}}}
    )
    run(f"resourcebundle apply -f {broken} --dry-run=client", expect=1)
    assert "name must be set in manifest" in run.err
    run(f"resourcebundle apply -f {file} --dry-run=client --wait", expect=2)


def test_works_of_another_source_are_deleted_with_its_id_only(run: Terminal, tmp_path: Path) -> None:
    run("consumer create lonely")
    for source, names in (("maestro-cli", ("a", "b")), ("src0", ("c", "d"))):
        file = write(tmp_path / f"{source}.yaml", *(work(name, consumer="lonely", app="many") for name in names))
        run(f"resourcebundle apply -f {file} --grpc-source-id {source}")

    run("resourcebundle delete -l app=many --yes", expect=1)
    assert "nothing was deleted; 2 resource bundles belong to another source than maestro-cli: give " in run.err
    assert "--grpc-source-id SOURCE, and with -l --source to take only those of one" in run.err
    run("resourcebundle delete -l app=many --source src0 --yes", expect=1)
    assert "than maestro-cli: give --grpc-source-id src0 (operation id" in run.err
    deleting = "resourcebundle list --consumer lonely --search 'deleted_at is not null' -o name"
    assert run(deleting) == ""
    assert json.loads(run("resourcebundle list -l '!app' -o json"))["items"] == []
    assert run.err.startswith("Reading every resource bundle: no index serves -l '!app'; ")
    assert run("resourcebundle list -l app,!half -o name").count("\n") == 4
    assert run.err.startswith("Reading every resource bundle: ")
    assert (run("resourcebundle list -l app=many,!half -o name").count("\n"), run.err) == (4, "")
    run("resourcebundle list -l app=many --page 2", expect=2)
    assert "--page shows one page" in run.err
    run("resourcebundle delete -l app=many --source src0 --grpc-source-id src0 --yes")
    assert run(deleting).count("\n") == 2


def test_works_are_awaited_edited_and_deleted_together(
    run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("consumer create c1")
    run("consumer create c2")
    file = write(tmp_path / "w.yaml", work("a"), work("b"), work("c", app="api"), work("d", consumer="c2"))
    run(f"resourcebundle apply -f {file}")
    assert run("resourcebundle wait c1/a c1/b --for=condition=Applied").count("condition met") == 2
    # No agent runs for c2.
    run("resourcebundle wait c2/d --timeout 100ms", expect=1)
    assert "(c2/d) is not Applied=True after 0.1 seconds: it is stored" in run.err
    run("resourcebundle wait c1/a --for=Applied", expect=2)

    def edit(line: str, *, expect: int = 0) -> str:
        monkeypatch.setenv("EDITOR", f"sed -i -e {line}")
        return run("resourcebundle edit c1/a", expect=expect)

    assert "edited" in edit("s/k:.*/k:\\ two/")
    assert run("resourcebundle get c1/a -o jsonpath={.version}/{.manifests[0].data.k}") == "2/two"
    assert edit("s/nothing/else/") == "Edit cancelled, no changes made\n"
    edit("s/kind:.*/kind:/", expect=1)
    assert "your changes are in " in run.err
    kept = Path(run.err.rpartition(" in ")[2].strip())
    assert "# Rejected: " in kept.read_text()
    kept.unlink()
    monkeypatch.setenv("EDITOR", os.fspath(tmp_path / "none"))
    run("resourcebundle edit c1/a", expect=1)
    assert "cannot be started" in run.err

    run("resourcebundle delete c1/a c1/nothing --yes", expect=1)
    assert run.err == "Error: resource bundle not found: c1/nothing\n"
    assert run("resourcebundle get c1/a -o jsonpath={.deleted_at}") == ""
    run("resourcebundle delete --yes", expect=2)
    run("resourcebundle delete c1/a -l app=web --yes", expect=2)
    run("resourcebundle delete -l app=web --consumer c1", expect=1)
    assert "Delete 2 resource bundles: c1/" in run.err
    assert run("resourcebundle delete -l app=web --consumer c1 --yes --wait").count("deleted successfully") == 2
    run(f"resourcebundle delete -f {file} --yes", expect=1)
    assert "(c1/a)" in run.err
    left = run(f"resourcebundle delete -f {file} --yes --ignore-not-found")
    assert left.count("(c1/c) deleted successfully\n") == 1
    assert left.count("(c2/d) deletion requested; its agent has to confirm it") == 1, "c2 has no agent"
    run("resourcebundle wait c1/c --for=delete")


def test_get_and_completion_know_consumers_and_works(run: Terminal, tmp_path: Path) -> None:
    run("consumer create c1")
    run("consumer create d2")
    run(f"rb apply -f {write(tmp_path / 'w.yaml', work('hello'), work('other'))}")
    assert run("get works --no-headers").count("\n") == 2
    assert yaml.safe_load(run("get work c1/hello -o yaml"))["metadata"]["name"] == "hello"
    assert run("get works c1/hello c1/other -o jsonpath='{.items[*].metadata.name}'") == "hello other"
    assert [line.split()[1] for line in run("get consumers c1 d2").splitlines()] == ["NAME", "c1", "d2"]
    run("get works c1/nothing", expect=1)
    run("consumer delete c1 --yes", expect=1)
    assert "cannot delete consumer c1: it still has works; delete the works of this consumer first" in run.err
    assert "SQL" not in run.err
    assert run("consumer delete -l nothing=here --yes") == ""
    assert run("consumer delete d2 --yes").endswith("deleted successfully\n")
    for shell in SHELLS:
        if shutil.which(shell) is None:
            continue
        completion = Completion(shell, tmp_path, dict(os.environ))
        assert completion.tab("maestro rb list --consumer c").split()[-1] == "c1"
        assert completion.tab("maestro rb get c1/h").split()[-1] == "c1/hello"
        assert completion.tab("maestro rb list --consumer=c").split()[-1] == "--consumer=c1"


@contextmanager
def watching(line: str) -> Iterator[IO[str]]:
    """Run a command that watches, yield its output, and end it with Ctrl-C."""
    command = [sys.executable, "-m", "maestropy.cli.main", *line.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process.stdout
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == ""


def until_status(lines: IO[str], status: str) -> list[str]:
    """Return the cells of the first row with this status."""
    return next(cells for line in lines if (cells := line.split())[-1] == status)


def test_watch_of_a_list_and_of_a_work_prints_changes(run: Terminal, tmp_path: Path) -> None:
    run("consumer create c1")
    with watching("get works -w") as every:
        assert every.readline().split()[:2] == ["ID", "NAME"]
        run(f"rb apply -f {write(tmp_path / 'w.yaml', work('hello'), work('other'))} --wait")
        assert until_status(every, "Applied")[2:4] == ["c1", "1"]
        with watching("get works c1/hello -w --no-headers") as one:
            assert one.readline().split()[1] == "hello"
            run("rb delete c1/hello --yes --wait")
            assert until_status(one, "Deleted")[1] == "hello"
        assert until_status(every, "Deleted")[1] == "hello"


def test_long_list_is_continued_with_its_token(run: Terminal, tmp_path: Path) -> None:
    run("consumer create pages")
    manifests = [work(f"page{number}", consumer="pages") for number in range(3)]
    run(f"resourcebundle apply -f {write(tmp_path / 'pages.yaml', *manifests)}")
    everything = run("resourcebundle list --consumer pages -o name").split()
    first = json.loads(run("resourcebundle list --consumer pages --size 2 -o json"))

    rest = run(f"resourcebundle list --consumer pages --size 2 --continue {first['continue']} -o name").split()

    assert [item["id"] for item in first["items"]] + rest == everything
    assert len(everything) == 3
    assert run.err == ""
    run(f"resourcebundle list --continue {first['continue']}", expect=1)
    assert "another search" in run.err
    run("resourcebundle list --continue abc --all", expect=2)
    assert "leave out --all" in run.err


def test_deletion_that_no_agent_confirms_is_explained(run: Terminal, tmp_path: Path) -> None:
    run("consumer create lonely")
    file = tmp_path / "work.yaml"
    file.write_text(yaml.safe_dump(work("orphan", consumer="lonely")))
    run(f"resourcebundle apply -f {file} --wait --timeout 1s", expect=1)
    bundle_id = run("resourcebundle get lonely/orphan -o jsonpath={.id}").strip()
    run(f"resourcebundle apply -f {file} --wait --timeout 1s", expect=1)
    assert f"find out where it stopped with `maestro trace work --resource-id {bundle_id}`" in run.err
    run("resourcebundle wait lonely/orphan --for=delete --timeout 1s", expect=1)
    assert "nobody has requested its deletion" in run.err
    requested = "deletion requested; its agent has to confirm it (--wait waits for that)"
    assert run("resourcebundle delete lonely/orphan --yes") == f"Resource bundle {bundle_id} {requested}\n"
    again = run("resourcebundle delete lonely/orphan --yes")
    assert again.startswith(f"Resource bundle {bundle_id} deletion requested at ")
    assert again.endswith("; its agent has not confirmed it yet\n")
    run("consumer delete lonely --yes", expect=1)
    assert "those in deletion stay until the agent of this consumer has confirmed it" in run.err
