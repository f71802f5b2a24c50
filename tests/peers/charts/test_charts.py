"""The charts: what they render is taken by a real API server and by the programs, and bad values by nobody."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from maestropy.agent import settings as agent_settings
from maestropy.agent.settings import FLAGS as AGENT_FLAGS
from maestropy.cli.parsing import settings_commands
from maestropy.flags import Flag
from maestropy.sdk._manifests.sources import plural
from maestropy.server import settings as server_settings
from maestropy.server.settings.load import FLAGS as SERVER_FLAGS
from scripts import play_page
from tests.peers import pubsub_emulator
from tests.peers.charts.bad_values import BAD
from tests.peers.charts.rendering import CHARTS, KUBERNETES, NAMESPACES, Helm, Manifest, containers, of_kind
from tests.peers.kube_cluster import KubeCluster
from tests.upstream import installation

pytestmark = pytest.mark.peers
SERVER, AGENT = "maestro-server", "maestro-agent"
DEPLOYMENTS = {SERVER: "maestro", AGENT: "maestro-agent"}
PRODUCTION = ("values-production.yaml",)
# Definitions that only OpenShift and the Prometheus operator have.
ELSEWHERE = ("Route", "PodMonitor")
EVERYTHING = {
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}, "interval": "15s"},
    "networkPolicy": {"enabled": True},
    "imagePullSecrets": [{"name": "registry"}],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "podLabels": {"team": "platform"},
    "logging": {"klogV": 4, "format": "json"},
}
CASES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "server-defaults": (SERVER, {}, ()),
    "server-production": (SERVER, {}, PRODUCTION),
    "server-everything": (
        SERVER,
        {
            **EVERYTHING,
            "route": {"enabled": True, "host": "maestro.example"},
            "service": {"grpc": {"headless": True}, "grpcBroker": {"type": "LoadBalancer", "annotations": {"a": "b"}}},
            "sources": [{"name": "my-adapter", "serviceAccount": "my-adapter", "namespace": "my-adapter"}],
            "database": {
                "authMethod": "az-entra",
                "cloudSqlProxy": {"enabled": True, "instanceConnectionName": "a:b:c"},
            },
            "server": {
                "http": {
                    "allowedHosts": ["maestro.example"],
                    "authentication": {
                        "type": "jwt",
                        "jwksURL": "https://issuer.example/keys",
                        "issuer": "https://issuer.example",
                        "audience": "a",
                    },
                },
                "console": {
                    "enabled": True,
                    "oidc": {
                        "issuerURL": "https://issuer.example",
                        "clientID": "console",
                        "redirectURL": "https://maestro.example/console/login/callback",
                        "token": "access",
                    },
                },
                "https": {"enabled": True},
                "metrics": {"https": {"enabled": True}},
                "subscriptionType": "broadcast",
                "priorityClassName": "system-cluster-critical",
                "annotations": {"a": "b"},
                "extraArgs": ["--heartbeat-interval=30"],
                "extraEnv": [{"name": "OTEL_TRACES_EXPORTER", "value": "none"}],
            },
        },
        PRODUCTION,
    ),
    "server-existing-secret": (SERVER, {"messageBroker": {"type": "mqtt", "existingSecret": "mine"}}, ()),
    **{
        f"server-upstream-{broker}": (SERVER, installation.server_values(broker, tls=tls), ())
        for broker, tls in (("grpc", True), ("mqtt", True), ("pubsub", False))
    },
    "agent-defaults": (AGENT, {}, ()),
    # The authority of the broker may be one that every system knows.
    "agent-mqtt-certificate-without-authority": (
        AGENT,
        {
            "messageBroker": {
                "type": "mqtt",
                "mqtt": {"clientCert": "/secrets/mqtt-certs/client.crt", "clientKey": "/secrets/mqtt-certs/client.key"},
            }
        },
        (),
    ),
    "agent-production": (
        AGENT,
        {"rbac": {"rules": [{"apiGroups": ["x"], "resources": ["y"], "verbs": ["get"]}]}},
        PRODUCTION,
    ),
    "agent-everything": (
        AGENT,
        {
            **EVERYTHING,
            "replicas": 2,
            "podMonitor": {"enabled": True, "tokenSecret": {"name": "reader"}},
            "extraArgs": ["--orphan-limit-percent=50"],
            "podAnnotations": {"a": "b"},
        },
        PRODUCTION,
    ),
    **{
        f"agent-upstream-{broker}": (AGENT, installation.agent_values(broker, "cluster1", tls=True), ())
        for broker in ("grpc", "mqtt", "pubsub")
    },
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def release(case: str, helm: Helm) -> list[Manifest]:
    chart, values, presets = CASES[case]
    return helm.template(chart, values, presets=presets)


def test_helm_finds_nothing_to_say(case: str, helm: Helm) -> None:
    chart, values, presets = CASES[case]
    files = [str(CHARTS / chart / name) for name in presets] + [str(helm.values_file(values))]
    words = [word for path in files for word in ("--values", path)]
    done = helm.run("lint", "--strict", str(CHARTS / chart), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 chart(s) failed" in done.stdout


def test_a_real_api_server_takes_every_object(case: str, release: list[Manifest], real_cluster: KubeCluster) -> None:
    with real_cluster.client() as api:
        api.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACES[CASES[case][0]]}})
        refused = [told for each in release if each["kind"] not in ELSEWHERE and (told := refusal(api, each))]
    assert refused == []


def refusal(api: httpx.Client, manifest: Manifest) -> str:
    group, slash, version = manifest["apiVersion"].partition("/")
    base = f"/apis/{group}/{version}" if slash else f"/api/{group}"
    namespace = manifest["metadata"].get("namespace")
    scope = f"/namespaces/{namespace}" if namespace else ""
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    answer = api.post(f"{base}{scope}/{plural(manifest['kind'])}", json=manifest, params=query)
    # What is there already (the definition) was taken before.
    return "" if answer.is_success or answer.status_code == httpx.codes.CONFLICT else answer.text


def test_the_programs_take_their_flags(case: str, release: list[Manifest]) -> None:
    for container in containers(release, DEPLOYMENTS[CASES[case][0]]):
        _, command, *words = container["command"]
        loads = {"server": server_settings.load, "migration": server_settings.load, "agent": agent_settings.load}
        flags: dict[str, Flag] = dict(AGENT_FLAGS if command == "agent" else SERVER_FLAGS)
        line = settings_commands.read(words, flags.values())
        given = {name: value for name, value in line.flags.items() if value is not None}
        assert not line.remaining, shlex.join(words)
        loads[command](given, {})


def test_every_file_a_flag_names_is_mounted(case: str, release: list[Manifest]) -> None:
    mounted = set()
    for container in containers(release, DEPLOYMENTS[CASES[case][0]]):
        places = tuple(f"{each['mountPath']}/" for each in container["volumeMounts"])
        named = [word.partition("=")[2] for word in container["command"] if "=/" in word]
        if any(path.endswith("/config.yaml") for path in named):
            named += broker_files(release)
        assert [path for path in named if not path.startswith(places)] == []
        mounted |= {each["name"] for each in container["volumeMounts"]}
        assert {each["name"] for each in container["volumes"]} >= mounted
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert mounted == {each["name"] for each in container["volumes"]}


def broker_files(release: list[Manifest]) -> list[str]:
    """Return the files that the configuration of the broker names."""
    texts = [secret.get("stringData", {}).get("config.yaml", "") for secret in of_kind(release, "Secret").values()]
    return [
        path for text in texts for name, path in (yaml.safe_load(text) or {}).items() if path and name.endswith("File")
    ]


def test_configuration_of_the_broker_is_what_the_programs_read(helm: Helm) -> None:
    values = {"messageBroker": {"type": "mqtt", "mqtt": {"user": "me: you", "password": "#1"}}}
    secret = of_kind(helm.template(SERVER, values), "Secret")["maestro-mqtt"]
    assert "username: 'me: you'" in secret["stringData"]["config.yaml"]
    assert "password: '#1'" in secret["stringData"]["config.yaml"]


# What a release of the Go Maestro's charts holds with these values; what is missing would be deleted by an upgrade.
UPSTREAM_OBJECTS = {
    SERVER: {
        "Deployment": {"maestro", "maestro-db", "maestro-mqtt"},
        "Service": {"maestro", "maestro-metrics", "maestro-grpc", "maestro-healthcheck", "maestro-db", "maestro-mqtt"},
        "Secret": {"maestro-mqtt", "maestro-rds", "maestro-db-creds"},
        "ConfigMap": {"maestro-mqtt"},
        "PersistentVolumeClaim": {"maestro-db"},
        "ServiceAccount": {"maestro"},
        "ClusterRole": {"maestro-server"},
        "ClusterRoleBinding": {"maestro-server"},
    },
    AGENT: {
        "Deployment": {"maestro-agent"},
        "Secret": {"maestro-agent-mqtt"},
        "CustomResourceDefinition": {"appliedmanifestworks.work.open-cluster-management.io"},
        "ServiceAccount": {"maestro-agent-sa"},
        "ClusterRole": {"maestro-agent:agent", "maestro-agent:execution"},
        "ClusterRoleBinding": {"maestro-agent:agent", "maestro-agent:execution", "maestro-agent:execution-admin"},
        "Role": {"maestro-agent:agent", "maestro-agent:agent:extension-apiserver"},
        "RoleBinding": {"maestro-agent:agent", "maestro-agent:agent:extension-apiserver"},
    },
}


@pytest.mark.parametrize("chart", UPSTREAM_OBJECTS)
def test_every_object_of_the_go_chart_is_here_too(chart: str, helm: Helm) -> None:
    values = {"postgresql": {"enabled": True}, "mosquitto": {"enabled": True}} if chart == SERVER else {}
    release = helm.template(chart, values)
    for kind, names in UPSTREAM_OBJECTS[chart].items():
        assert names <= set(of_kind(release, kind)), kind
    deployment = of_kind(release, "Deployment")[DEPLOYMENTS[chart]]["spec"]
    # Immutable: another selector would make an upgrade fail.
    assert deployment["selector"]["matchLabels"] == {
        "app": DEPLOYMENTS[chart],
        "app.kubernetes.io/name": chart,
        "app.kubernetes.io/instance": chart,
    }


@pytest.mark.parametrize(
    ("route", "allowed", "flags"),
    [
        pytest.param({"enabled": False, "host": "a.example"}, [], [], id="no-route"),
        pytest.param({"enabled": True}, [], [], id="host-chosen-by-openshift"),
        pytest.param({"enabled": True, "host": "a.example"}, [], ["--http-allowed-hosts=a.example"], id="route"),
        pytest.param(
            {"enabled": True, "host": "a.example"},
            ["b.example", "a.example"],
            ["--http-allowed-hosts=b.example,a.example"],
            id="route-beside-others",
        ),
    ],
)
def test_rest_accepts_the_host_of_the_route(
    route: Mapping[str, Any], allowed: list[str], flags: list[str], helm: Helm
) -> None:
    release = helm.template(SERVER, {"route": route, "server": {"http": {"allowedHosts": allowed}}})
    arguments = [word for each in containers(release, "maestro") for word in each["command"]]
    assert [word for word in arguments if word.startswith("--http-allowed-hosts")] == flags


def test_records_of_works_outlive_the_release(helm: Helm) -> None:
    (definition,) = of_kind(helm.template(AGENT, {}), "CustomResourceDefinition").values()
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert of_kind(helm.template(AGENT, {"installWorkCRDs": False}), "CustomResourceDefinition") == {}


def test_agent_of_the_production_values_is_not_cluster_admin(helm: Helm) -> None:
    release = helm.template(AGENT, {}, presets=PRODUCTION)
    bound = {each["roleRef"]["name"] for each in release if each["kind"].endswith("RoleBinding")}
    assert "cluster-admin" not in bound
    rules = [rule for each in release if each["kind"].endswith("Role") for rule in each.get("rules", ())]
    dangerous = {"*", "impersonate", "escalate", "bind", "secrets", "roles", "clusterroles", "clusterrolebindings"}
    assert dangerous.isdisjoint(word for rule in rules for words in rule.values() for word in words)


@pytest.mark.parametrize("chart", [SERVER, AGENT])
def test_network_policy_of_the_production_values(chart: str, helm: Helm) -> None:
    release = helm.template(chart, {}, presets=PRODUCTION)
    (policy,) = of_kind(release, "NetworkPolicy").values()
    pod = of_kind(release, "Deployment")[DEPLOYMENTS[chart]]["spec"]["template"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    named = {port["name"] for each in pod["spec"]["containers"] for port in each["ports"]}
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= named
    open_to_all = [rule["ports"] for rule in policy["spec"]["ingress"] if "from" not in rule]
    assert open_to_all == ([[{"protocol": "TCP", "port": "grpc-broker"}]] if chart == SERVER else [])


@pytest.mark.parametrize(("chart", "values", "text"), BAD.values(), ids=BAD)
def test_bad_values_are_named(chart: str, values: Mapping[str, Any], text: str, helm: Helm) -> None:
    said = helm.try_template(chart, values)
    assert text in said, said


# Helm ends its errors of templates with an advice.
HINT = re.compile(r"\n\nUse --debug flag .*")


def test_page_shows_what_helm_says_against_bad_values(helm: Helm) -> None:
    page = (CHARTS.parent / "docs" / "deploy.md").read_text()
    played = list(
        play_page.commands(page.partition("## Bad values")[2].partition("```console\n")[2].partition("```")[0])
    )
    assert len(played) == 2
    for command, shown in played:
        program, *words = shlex.split(command)
        assert program == "helm"
        words = [word if not word.startswith("charts/") else str(CHARTS.parent / word) for word in words]
        done = helm.run(*words, "--kube-version", KUBERNETES)
        assert (done.returncode, done.stdout + HINT.sub("", done.stderr).strip()) == (1, shown.strip())


STRANGE = ["a#b", "a: b", "a #b", 'a"b', "{a}", "*a", "$x", "\\n"]


@pytest.mark.parametrize("text", STRANGE)
def test_strange_text_stays_one_argument(text: str, helm: Helm) -> None:
    tls = {"enabled": True, "certFile": text, "keyFile": text, "clientCAFile": text}
    keys = {"type": "jwt", "jwksURL": "https://a.example", "audience": text}
    values = {
        "messageBroker": {"type": "grpc", "grpc": {"tls": tls}},
        "server": {"grpc": {"tls": tls}, "http": {"authentication": keys}, "extraArgs": [f"--x={text}"]},
    }
    server = [word for each in containers(helm.template(SERVER, values), "maestro") for word in each["command"]]
    flags = ("grpc-tls-cert-file", "grpc-client-ca-file", "grpc-broker-tls-key-file", "jwt-audience", "x")
    assert {f"--{flag}={text}" for flag in flags} <= set(server)


@pytest.mark.parametrize("text", ["yes", "null", "1e3", "0x1f", "12", "~"])
def test_words_that_yaml_takes_for_something_else_stay_text(text: str, helm: Helm) -> None:
    names = {} if text == "~" else {"serviceAccount": {"name": text}, "priorityClassName": text}
    release = helm.template(AGENT, {"cloudeventsClientId": text, "image": {"repository": text}, **names})
    pod = of_kind(release, "Deployment")["maestro-agent"]["spec"]["template"]["spec"]
    assert f"--cloudevents-client-id={text}" in pod["containers"][0]["command"]
    assert pod["containers"][0]["image"].startswith(f"{text}:")
    if names:
        assert (pod["serviceAccountName"], pod["priorityClassName"]) == (text, text)
        assert text in of_kind(release, "ServiceAccount")


@pytest.mark.parametrize(("url", "ports"), [("a.example:9443", [9443]), ("a.example:443", []), ("a.example", [])])
def test_agent_may_connect_to_the_port_of_its_server(url: str, ports: list[int], helm: Helm) -> None:
    release = helm.template(AGENT, {"messageBroker": {"grpc": {"url": url}}}, presets=PRODUCTION)
    (policy,) = of_kind(release, "NetworkPolicy").values()
    (rule,) = policy["spec"]["egress"]
    assert [port["port"] for port in rule["ports"]] == [53, 53, 443, 6443, 8091, *ports]


def test_subscriptions_of_server_and_agent_are_created(helm: Helm, tmp_path: Path) -> None:
    with pubsub_emulator.emulator(tmp_path / "emulator") as emulator:
        names = {
            SERVER: installation.server_values("pubsub", tls=False),
            AGENT: installation.agent_values("pubsub", "made-here", tls=False),
        }
        for chart, values in names.items():
            values["messageBroker"]["pubsub"]["endpoint"] = emulator.host
            release = helm.template(chart, values)
            (secret,) = [each for name, each in of_kind(release, "Secret").items() if name.endswith("-pubsub")]
            pod = of_kind(release, "Deployment")[DEPLOYMENTS[chart]]["spec"]["template"]["spec"]
            (container,) = [each for each in pod["initContainers"] if each["name"] == "subscriptions"]
            config = tmp_path / f"{chart}.yaml"
            config.write_text(secret["stringData"]["config.yaml"])
            given = {each["name"]: each["value"] for each in container["env"]} | {"CONFIG": str(config)}
            command = [sys.executable, *container["command"][1:]]
            # Again, as with every start of a pod.
            for wanted in ("created:", "exists already:") if chart == AGENT else ("exists already:",):
                done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **given}, check=False)
                assert done.returncode == 0, done.stderr
                assert wanted in done.stdout
        emulator.publish("sourceevents", {"ce-clustername": "made-here"}, b"mine")
        emulator.publish("sourceevents", {"ce-clustername": "other"}, b"not mine")
        assert [message.data for message in emulator.pull("sourceevents-made-here")] == [b"mine"]
