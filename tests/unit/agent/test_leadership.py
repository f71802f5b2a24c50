"""Which lease an agent competes for."""

from pathlib import Path

import pytest

from maestropy.agent import leadership, settings
from maestropy.flags import SettingsError
from maestropy.kube.address import ClusterAddress
from maestropy.kube.leases import Terms

HOME = ClusterAddress(server="https://k:6443", namespace="home")


def elect(path: Path, content: str = "", *, given: dict[str, str] | None = None) -> leadership.Election:
    flags = {"--consumer-name": "c1", "--grpc-url": "m:1", "--disable-leader-election": "false", **(given or {})}
    if content:
        file = path / "operator.yaml"
        file.write_text(content)
        flags["--config"] = str(file)
    return leadership.election(settings.load(flags, {}), HOME, identity="me")


@pytest.mark.parametrize(
    ("content", "given", "namespace"),
    [
        pytest.param("", {}, "home", id="of-pod-or-kubeconfig"),
        pytest.param("", {"--namespace": "flag"}, "flag", id="of-the-flag"),
        pytest.param("leaderElection: {namespace: file}", {"--namespace": "flag"}, "file", id="of-the-file"),
        pytest.param("servingInfo: {bindAddress: x}", {}, "home", id="of-a-file-about-other-things"),
    ],
)
def test_namespace(tmp_path: Path, content: str, given: dict[str, str], namespace: str) -> None:
    assert elect(tmp_path, content, given=given).terms == Terms(
        namespace=namespace, name="maestro-agent-lock", identity="me"
    )


def test_times_and_name_of_the_file(tmp_path: Path) -> None:
    found = elect(
        tmp_path, "leaderElection: {name: lock, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, x: 1}"
    )
    assert found.terms == Terms(
        namespace="home", name="lock", identity="me", lease_seconds=15, renew_seconds=10, retry_seconds=2
    )
    (note,) = found.notes
    assert note.endswith("leaderElection.x is not known and is ignored")


@pytest.mark.parametrize(
    ("content", "given"),
    [
        pytest.param("", {"--disable-leader-election": "true"}, id="by-the-flag"),
        pytest.param("leaderElection: {disable: true}", {}, id="by-the-file"),
    ],
)
def test_no_election(tmp_path: Path, content: str, given: dict[str, str]) -> None:
    assert elect(tmp_path, content, given=given).terms is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("leaderElection: {leaseDuration: 10s}", "retryPeriod < renewDeadline < leaseDuration", id="order"),
        pytest.param("leaderElection: {leaseDuration: soon}", "leaseDuration cannot be used; write", id="no-duration"),
        pytest.param("leaderElection: yes", "leaderElection cannot be used; write", id="no-section"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        elect(tmp_path, content)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--config=.* cannot be read \(No such file"):
        elect(tmp_path, given={"--config": str(tmp_path / "none")})
