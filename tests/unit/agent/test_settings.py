import dataclasses
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from maestropy.agent.settings import FLAGS, AgentSettings, ListenAddress, load
from maestropy.flags import SettingsError
from maestropy.flags.help_text import help_texts

LEAST = {"--consumer-name": "cluster1", "--grpc-url": "maestro:8091"}

# Flags and defaults of the Go agent; intended differences are below.
REFERENCE_DEFAULTS = {
    "--consumer-name": "",
    "--cloudevents-client-id": "",
    "--cloudevents-client-codecs": "manifestbundle",
    "--status-sync-interval": "10s",
    "--appliedmanifestwork-eviction-grace-period": "1h0m0s",
    "--max-json-raw-length": "1048576",
    "--max-feedback-watch": "50",
    "--workload-agent-workers": "10",
    "--disable-leader-election": "true",
    "--kubeconfig": "",
    "--namespace": "",
    "--listen": "0.0.0.0:8443",
    "--config": "",
    "--terminate-on-files": "",
}
# Flags whose default differs from the Go agent's.
OTHER_DEFAULTS = {
    "--workload-source-driver": "grpc",
    "--workload-source-config": "",
    "--kube-api-qps": "500.0",
    "--kube-api-burst": "1000",
    "-v": "2",
}


def test_every_flag_of_go_agent_exists_with_its_default() -> None:
    defaults = {name: flag.shown_default() for name, flag in FLAGS.items()}
    expected = REFERENCE_DEFAULTS | OTHER_DEFAULTS
    assert {name: defaults.get(name) for name in expected} == expected


def test_fields_have_distinct_flags() -> None:
    declared = [
        item.metadata["flag"]
        for group in dataclasses.fields(AgentSettings)
        for item in dataclasses.fields(group.default_factory)  # type: ignore[arg-type]  # every group has one
        if "flag" in item.metadata
    ]
    assert sorted(declared) == sorted(FLAGS)


def test_every_field_has_docstring() -> None:
    groups = {flag.group_kind for flag in FLAGS.values()}
    silent = {
        f"{group.__name__}.{item.name}"
        for group in groups
        for item in dataclasses.fields(group)
        if not help_texts(group).get(item.name)
    }
    assert silent == set()


@pytest.mark.parametrize("name", sorted(FLAGS))
def test_explicit_default_changes_nothing(name: str) -> None:
    flag = FLAGS[name]
    assert flag.read(flag.shown_default()) == flag.default


def test_command_line_of_charts() -> None:
    settings = load(
        {
            "--consumer-name": "cluster1",
            "--workload-source-driver": "grpc",
            "--workload-source-config": "/secrets/grpc/config.yaml",
            "--cloudevents-client-id": "my-agent",
            "--status-sync-interval": "1m",
            "--terminate-on-files": "/a,/b",
            "-v": "2",
        },
        {"POD_NAME": "maestro-agent-1", "MAESTRO_ENV": "production"},
    )
    assert settings.hub.consumer_name == "cluster1"
    assert settings.hub.client_id == "my-agent"
    assert settings.hub.config_file == Path("/secrets/grpc/config.yaml")
    assert settings.work.status_sync_interval == timedelta(minutes=1)
    assert settings.process.terminate_on_files == ("/a", "/b")
    assert settings.log.pod_name == "maestro-agent-1"
    assert settings.cluster.install_crds


def test_client_id_defaults_to_consumer_name() -> None:
    assert load(LEAST, {}).hub.client_id == "cluster1-work-agent"


@pytest.mark.parametrize(
    ("text", "expected", "is_loopback"),
    [
        pytest.param("0.0.0.0:8443", ListenAddress(host="0.0.0.0", port=8443), False, id="all-interfaces"),
        pytest.param(":0", ListenAddress(host="", port=0), False, id="no-host-and-any-port"),
        pytest.param("127.0.0.1:0", ListenAddress(host="127.0.0.1", port=0), True, id="loopback"),
        pytest.param("localhost:1", ListenAddress(host="localhost", port=1), True, id="loopback-by-name"),
        pytest.param("[::1]:8443", ListenAddress(host="::1", port=8443), True, id="loopback-ipv6"),
        pytest.param("[::]:8443", ListenAddress(host="::", port=8443), False, id="all-interfaces-ipv6"),
        pytest.param("example.org:1", ListenAddress(host="example.org", port=1), False, id="name"),
    ],
)
def test_listen_address(text: str, expected: ListenAddress, is_loopback: bool) -> None:
    listen = load(LEAST | {"--listen": text}, {}).process.listen
    assert listen == expected
    assert listen.is_loopback is is_loopback
    assert str(listen) == text


def test_empty_listen_address_disables_port() -> None:
    assert load(LEAST | {"--listen": ""}, {}).process.listen is None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        pytest.param({"--consumer-name": ""}, "cluster name is required; give --consumer-name", id="no-consumer"),
        pytest.param({"--consumer-name": "A B"}, "--consumer-name=A B: a lowercase RFC 1123 label", id="bad-consumer"),
        pytest.param({"--workload-source-driver": "mqtt"}, "mqtt needs --workload-source-config", id="mqtt"),
        pytest.param(
            {"--workload-source-driver": "pubsub"},
            "pubsub needs --workload-source-config; give",
            id="pubsub-without-file",
        ),
        pytest.param({"--workload-source-driver": "kube"}, "kube is not in this version yet; use", id="kube"),
        pytest.param({"--workload-source-driver": "x"}, "use one of grpc, mqtt, pubsub, kube", id="unknown-driver"),
        pytest.param({"--grpc-url": ""}, "give --workload-source-config or --grpc-url", id="no-server"),
        pytest.param({"--workload-source-config": "/c"}, "leave one of them out", id="two-servers"),
        pytest.param({"--workload-agent-workers": "0"}, "--workload-agent-workers=0: use 1 or more", id="no-workers"),
        pytest.param(
            {"--max-json-raw-length": "-1"}, "--max-json-raw-length=-1: use 0 or more", id="negative-json-raw-length"
        ),
        pytest.param({"--kube-api-qps": "nan"}, "--kube-api-qps=nan: use 0 or more", id="invalid-qps"),
        pytest.param({"--kube-api-qps": "inf"}, "--kube-api-qps=inf: use 0 or more", id="infinite-qps"),
        pytest.param({"--kube-api-burst": "0"}, "--kube-api-burst=0: use 1 or more", id="zero-burst"),
        pytest.param({"--status-sync-interval": "0s"}, "--status-sync-interval must be longer", id="status-always"),
        pytest.param({"--status-sync-interval": "10"}, "such as 500ms, 10s", id="duration-without-unit"),
        pytest.param({"--resync-interval": "-1s"}, "--resync-interval must be longer", id="negative-resync-interval"),
        pytest.param(
            {"--appliedmanifestwork-eviction-grace-period": "-1m"}, "is negative", id="negative-eviction-grace-period"
        ),
        pytest.param({"--listen": "8443"}, "--listen is not an address; write host:port", id="port-alone"),
        pytest.param({"--listen": "h:65536"}, "--listen is not an address", id="port-too-high"),
        pytest.param({"--listen": "::1:8443"}, "--listen is not an address", id="ipv6-without-brackets"),
        pytest.param({"--agent-id": "x"}, "--agent-id is not a flag of the agent; see `maestro agent", id="unknown"),
    ],
)
def test_rejection_names_flag_and_remedy(changes: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(SettingsError, match=re.escape(complaint)):
        load(LEAST | dict(changes), {})
