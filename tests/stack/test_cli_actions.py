"""Operator actions of the command line on a real server and agent."""

import json
from pathlib import Path

import pytest

from maestropy.sandbox.server_process import ServerProcess
from maestropy.sdk import errors
from maestropy.sdk.blocking import Maestro
from maestropy.trace.exit_codes import Exit
from tests.stack.sdk_live import live_server as live_server
from tests.stack.test_cli_clients import WORK, Shell
from tests.stack.test_cli_clients import shell as shell


@pytest.fixture
def work(shell: Shell, tmp_path: Path) -> Path:
    """A work that is applied on consumer c1."""
    file = tmp_path / "work.yaml"
    file.write_text(WORK)
    shell("consumer create c1")
    shell(f"resourcebundle apply -f {file} --wait")
    return file


def test_paused_work_is_explained_and_applied_after_the_resumption(
    shell: Shell, work: Path, live_server: ServerProcess
) -> None:
    trace = (
        f"trace work --work-name hello --consumer c1 --no-cluster --rest-url http://127.0.0.1:{live_server.ports.rest}"
    )
    plan = shell("consumer pause c1 --dry-run")
    assert "Send no specs and no deletions to consumer c1 (1 work) until it is resumed." in plan
    assert plan.endswith("Dry run: nothing was changed\n")
    assert "PAUSED" not in shell("consumer list")
    # Off a terminal it needs --yes.
    assert "There is no terminal to ask: add --yes" in shell("consumer pause c1", expect=1)
    assert shell("consumer pause c1 --reason upgrade --yes") == plan.replace("Dry run: nothing was changed", "Done")
    assert "Nothing: delivery to consumer c1 is paused by unauthenticated" in shell("consumer pause c1 --yes")
    again = json.loads(shell("consumer pause c1 --yes -o json"))
    assert (again["is_change"], again["is_dry_run"]) == (False, False)
    assert shell("consumer pause c1 --yes").endswith("Nothing was changed\n")
    assert json.loads(shell("consumer pause c1 --dry-run -o json"))["is_dry_run"]
    work.write_text(WORK.replace('k: "1"', 'k: "2"'))
    shell(f"resourcebundle apply -f {work}")
    lines = shell("consumer list").splitlines()
    assert lines[0].split()[-1] == "PAUSED"
    assert "since " in lines[1]
    shown = json.loads(shell("consumer get c1 -o json"))
    assert shown["delivery_pause"]["reason"] == "upgrade"
    assert "upgrade" in shell("consumer get c1")
    traced = shell(trace, expect=Exit.PROBLEM)
    assert "MW-123" in traced
    assert "delivery to this consumer is paused by unauthenticated from 127.0.0.1" in traced
    assert "maestro consumer resume c1" in traced
    assert json.loads(shell("consumer resume c1 --yes -o json"))["is_change"]
    shell("resourcebundle wait c1/hello --for=condition=Applied")
    assert "MW-123" not in shell(trace, expect=Exit.INCONCLUSIVE)  # no cluster was read
    assert "PAUSED" not in shell("consumer list")
    kinds = [json.loads(line)["kind"] for line in shell("history c1 --kind consumer -o jsonl").splitlines()]
    assert kinds == ["consumer.created", "consumer.paused", "consumer.resumed"]


def test_work_is_resent_and_consumer_resynced(shell: Shell, work: Path) -> None:
    assert "Send version 1 of work c1/hello" in shell("resourcebundle resend c1/hello --dry-run")
    assert shell("rb resend c1/hello --reason lost --yes").endswith("Done\n")
    (entry,) = map(json.loads, shell("history c1/hello --kind work.resent -o jsonl").splitlines())
    assert entry["detail"]["reason"] == "lost"
    assert shell("consumer resync c1 --yes").endswith("Done\n")
    assert "resource bundle not found" in shell("rb resend c1/other --yes", expect=1).lower()


def test_retirement_says_what_it_wants_and_why_it_is_refused(shell: Shell, work: Path) -> None:
    assert "--release" in shell("consumer retire c1", expect=2)
    assert "--release" in shell("consumer retire c1 --release --delete", expect=2)
    assert "Error: cannot retire consumer c1: The servers run only since" in shell(
        "consumer retire c1 --release --dry-run", expect=1
    )
    assert "did you mean c1?" in shell("consumer retire c11 --release --dry-run", expect=1)


def test_sweep_without_orphans_changes_nothing(shell: Shell, work: Path) -> None:
    assert shell("consumer sweep --yes") == (
        "Nothing: every row belongs to a consumer or a work.\nNothing was changed\n"
    )
    assert "Invalid" in shell("consumer sweep --class works", expect=2)


def test_sdk_has_the_same_actions(live_server: ServerProcess) -> None:
    url = f"http://127.0.0.1:{live_server.ports.rest}"
    with Maestro(api_url=url, grpc_url=f"127.0.0.1:{live_server.ports.sources}", source="s") as client:
        client.consumers.ensure("c1")
        assert client.consumers.pause("c1", dry_run=True).is_dry_run
        assert client.consumers.pause("c1", reason="r").is_change
        assert client.consumers.pauses()["c1"].reason == "r"
        assert client.consumers.resume("c1").is_change
        assert client.consumers.resync("c1").work_count == 0
        with pytest.raises(errors.Conflict, match="The servers run only since"):
            client.consumers.retire("c1", works="release", dry_run=True)
        assert not client.consumers.sweep(dry_run=True).is_change
        with pytest.raises(errors.NotFound):
            client.resource_bundles.resend("none")
        with pytest.raises(errors.Invalid, match="reason"):
            client.consumers.pause("c1", reason="x" * 501)
