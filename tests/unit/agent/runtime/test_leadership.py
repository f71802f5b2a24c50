"""The lease of the leader election."""

from pathlib import Path

import pytest

from maestropy.agent import settings
from maestropy.agent.runtime import leadership
from maestropy.flags import SettingsError
from maestropy.kube.config.address import ClusterAddress
from maestropy.kube.leases import LeaderElectionSettings

HOME = ClusterAddress(server="https://k:6443", namespace="home")


def elect(path: Path, content: str = "", *, flags: dict[str, str] | None = None) -> leadership.LeaderElection:
    flags = {"--consumer-name": "c1", "--grpc-url": "m:1", "--disable-leader-election": "false", **(flags or {})}
    if content:
        file = path / "operator.yaml"
        file.write_text(content)
        flags["--config"] = str(file)
    return leadership.election(settings.load(flags, {}), HOME, identity="me")


@pytest.mark.parametrize(
    ("content", "flags", "namespace"),
    [
        pytest.param("", {}, "home", id="namespace-of-pod-or-kubeconfig"),
        pytest.param("", {"--namespace": "flag"}, "flag", id="namespace-of-flag"),
        pytest.param("leaderElection: {namespace: file}", {"--namespace": "flag"}, "file", id="namespace-of-file"),
        pytest.param("servingInfo: {bindAddress: x}", {}, "home", id="file-without-leader-election"),
    ],
)
def test_lease_namespace(tmp_path: Path, content: str, flags: dict[str, str], namespace: str) -> None:
    assert elect(tmp_path, content, flags=flags).terms == LeaderElectionSettings(
        namespace=namespace, name="maestro-agent-lock", identity="me"
    )


def test_config_file_sets_durations_and_lease_name(tmp_path: Path) -> None:
    elected = elect(
        tmp_path, "leaderElection: {name: lock, leaseDuration: 15s, renewDeadline: 10s, retryPeriod: 2s, x: 1}"
    )
    assert elected.terms == LeaderElectionSettings(
        namespace="home", name="lock", identity="me", lease_seconds=15, renew_seconds=10, retry_seconds=2
    )
    (note,) = elected.notes
    assert note.endswith("leaderElection.x is not known and is ignored")


@pytest.mark.parametrize(
    ("content", "flags"),
    [
        pytest.param("", {"--disable-leader-election": "true"}, id="by-the-flag"),
        pytest.param("leaderElection: {disable: true}", {}, id="by-the-file"),
    ],
)
def test_leader_election_disabled(tmp_path: Path, content: str, flags: dict[str, str]) -> None:
    assert elect(tmp_path, content, flags=flags).terms is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param("leaderElection: {leaseDuration: 10s}", "retryPeriod < renewDeadline < leaseDuration", id="order"),
        pytest.param("leaderElection: {leaseDuration: soon}", "leaseDuration cannot be used; write", id="no-duration"),
        pytest.param("leaderElection: yes", "leaderElection cannot be used; write", id="no-section"),
    ],
)
def test_invalid_leader_election_is_rejected(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(SettingsError, match=complaint):
        elect(tmp_path, content)


def test_missing_config_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"--config=.* cannot be read \(No such file"):
        elect(tmp_path, flags={"--config": str(tmp_path / "none")})
