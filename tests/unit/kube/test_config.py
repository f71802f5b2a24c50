"""Kubeconfigs and service accounts: addresses, credentials and errors."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from maestropy.kube.config import load as config
from maestropy.kube.config.address import ClusterAddress, Credentials, ExecPlugin, Pem
from maestropy.kube.errors import BadConfig

EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token", "args": ["-x"]}


def kubeconfig(
    *, cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, context: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://kube:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"} | (context or {})}],
    }


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def read(tmp_path: Path, content: Any, *, context: str = "") -> ClusterAddress:
    return config.from_kubeconfig([write(tmp_path / "kubeconfig", content)], context=context)


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_complete_kubeconfig(tmp_path: Path) -> None:
    address = read(
        tmp_path,
        kubeconfig(
            cluster={
                "server": "https://kube/prefix/",
                "certificate-authority-data": data("CA"),
                "tls-server-name": "n",
            },
            user={"client-certificate-data": data("CERT"), "client-key-data": data("KEY"), "token": "t"},
            context={"namespace": "home"},
        ),
    )
    assert address == ClusterAddress(
        server="https://kube/prefix",
        ca=Pem(data=b"CA"),
        tls_server_name="n",
        namespace="home",
        origin=f"{tmp_path}/kubeconfig: context 'main'",
        credentials=Credentials(token="t", client_certificate=Pem(data=b"CERT"), client_key=Pem(data=b"KEY")),
    )
    assert "CERT" not in repr(address)
    assert "token='t'" not in repr(address)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param({}, Credentials(), id="anonymous"),
        pytest.param({"username": "u", "password": "p"}, Credentials(username="u", password="p"), id="basic"),
        pytest.param({"token": "t", "exec": EXEC}, Credentials(token="t"), id="token-before-exec"),
        pytest.param(
            {"exec": EXEC | {"env": [{"name": "A", "value": "b"}], "installHint": "buy it"}},
            Credentials(
                plugin=ExecPlugin(
                    api_version="client.authentication.k8s.io/v1",
                    command="get-token",
                    arguments=("-x",),
                    environment=(("A", "b"),),
                    install_hint="buy it",
                )
            ),
            id="exec",
        ),
        pytest.param(
            {"as": "boss", "as-groups": ["g", "h"], "as-uid": "7"},
            Credentials(
                impersonation=(
                    ("Impersonate-User", "boss"),
                    ("Impersonate-Uid", "7"),
                    ("Impersonate-Group", "g"),
                    ("Impersonate-Group", "h"),
                )
            ),
            id="as",
        ),
    ],
)
def test_users(tmp_path: Path, user: dict[str, Any], expected: Credentials) -> None:
    assert read(tmp_path, kubeconfig(user=user)).credentials == expected


def test_relative_paths_start_at_the_kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ca", "crt", "key", "token"):
        write(tmp_path / "pki" / name, name)
    content = kubeconfig(
        cluster={"certificate-authority": "pki/ca"},
        user={
            "client-certificate": str(tmp_path / "pki" / "crt"),
            "client-key": "pki/key",
            "tokenFile": "pki/token",
            "token": "loses",
        },
    )
    write(tmp_path / "kubeconfig", content)
    address = config.from_kubeconfig([Path("kubeconfig")])
    home = tmp_path / "pki"
    assert address.ca == Pem(file=home / "ca")
    assert address.credentials == Credentials(
        token_file=home / "token", client_certificate=Pem(file=home / "crt"), client_key=Pem(file=home / "key")
    )


def test_exec_plugin_gets_cluster_info(tmp_path: Path) -> None:
    cluster = {
        "certificate-authority-data": data("CA"),
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}}],
    }
    plugin = EXEC | {"command": "./bin/token", "provideClusterInfo": True, "interactiveMode": "Never"}
    plugin_found = read(tmp_path, kubeconfig(cluster=cluster, user={"exec": plugin})).credentials.plugin
    assert plugin_found is not None
    assert plugin_found.command == f"{tmp_path}/bin/token"
    assert plugin_found.cluster_info == {
        "server": "https://kube:6443",
        "certificate-authority-data": data("CA"),
        "config": {"audience": "x"},
    }


def test_the_last_of_two_equal_keys_counts_as_for_kubectl(tmp_path: Path) -> None:
    text = yaml.safe_dump(kubeconfig()).replace(
        "server: https://kube:6443", "server: https://old:6443\n    server: https://kube:6443"
    )
    assert "old" in text
    assert read(tmp_path, text).server == "https://kube:6443"


def test_named_context(tmp_path: Path) -> None:
    content = kubeconfig()
    content["clusters"].append({"name": "other", "cluster": {"server": "http://other:8080"}})
    content["contexts"].append({"name": "second", "context": {"cluster": "other"}})
    assert read(tmp_path, content, context="second").server == "http://other:8080"


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "one", {"contexts": kubeconfig()["contexts"], "users": [{"name": "u", "user": {"token": "1"}}]}
    )
    second = write(tmp_path / "b" / "two", kubeconfig(cluster={"certificate-authority": "ca"}, user={"token": "2"}))
    write(tmp_path / "b" / "ca", "CA")
    address = config.from_kubeconfig([first, tmp_path / "missing", second])
    assert address.credentials.token == "1"
    assert address.ca == Pem(file=tmp_path / "b" / "ca")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "is not a kubeconfig: it holds no object", id="empty"),
        pytest.param("a: [s3cret", "is not a kubeconfig: it is not YAML", id="not-yaml"),
        pytest.param("- s3cret", "it holds no object", id="list"),
        pytest.param({}, "current-context is not set", id="no-context"),
        pytest.param({"current-context": 7}, "current-context must be a string", id="context-number"),
        pytest.param({"current-context": "x"}, "there is no context 'x'", id="unknown-context"),
        pytest.param({"current-context": "x", "contexts": {}}, "contexts must be a list", id="contexts"),
        pytest.param(kubeconfig(context={"cluster": "x"}), "context 'main': cluster names 'x'", id="unknown-cluster"),
        pytest.param(kubeconfig(context={"user": "x"}), "context 'main': user names 'x'", id="unknown-user"),
        pytest.param(kubeconfig(cluster={"server": ""}), "cluster 'c': server must be", id="no-server"),
        pytest.param(kubeconfig(cluster={"server": "kube:6443"}), "cluster 'c': server must be", id="no-scheme"),
        pytest.param(kubeconfig(cluster={"server": 7}), "cluster 'c': server must be a string", id="number"),
        pytest.param(kubeconfig(cluster={"proxy-url": "http://p"}), "proxy-url is not supported", id="proxy"),
        pytest.param(
            kubeconfig(cluster={"certificate-authority": "nowhere"}),
            r"certificate-authority names .*/nowhere, which cannot be read \(No such file",
            id="missing-ca-file",
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority-data": "s3cret!"}), "-data is not base64", id="no-base64"
        ),
        pytest.param(
            kubeconfig(cluster={"certificate-authority-data": data("x"), "insecure-skip-tls-verify": True}),
            "choose one",
            id="ca-and-insecure",
        ),
        pytest.param(
            kubeconfig(cluster={"insecure-skip-tls-verify": "yes"}), "must be true or false", id="insecure-text"
        ),
        pytest.param(
            kubeconfig(user={"client-certificate-data": data("x")}), "client-key is not; set both", id="no-key"
        ),
        pytest.param(
            kubeconfig(user={"client-key-data": data("s3cret")}), "client-certificate is not", id="no-certificate"
        ),
        pytest.param(kubeconfig(user={"token": "s3cret", "username": "u"}), "choose one", id="token-and-basic"),
        pytest.param(kubeconfig(user={"token": 12345}), "user 'u': token must be a string", id="token-number"),
        pytest.param(kubeconfig(user={"tokenFile": "nowhere"}), "tokenFile names", id="missing-token-file"),
        pytest.param(kubeconfig(user={"auth-provider": {"name": "gcp"}}), "use exec", id="auth-provider"),
        pytest.param(kubeconfig(user={"as-groups": ["g"]}), "need as", id="groups-without-user"),
        pytest.param(kubeconfig(user={"as": "x", "as-user-extra": {"a": ["b"]}}), "remove it", id="extra"),
        pytest.param(kubeconfig(user={"exec": {"command": "x"}}), "exec.apiVersion must be one of", id="exec-version"),
        pytest.param(kubeconfig(user={"exec": EXEC | {"command": ""}}), "exec.command is missing", id="exec-command"),
        pytest.param(
            kubeconfig(user={"exec": EXEC | {"interactiveMode": "Always"}}),
            "there is no terminal",
            id="exec-interactive",
        ),
    ],
)
def test_error_names_the_mistake(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(BadConfig, match=message) as caught:
        read(tmp_path, content)
    assert str(tmp_path / "kubeconfig") in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_error_names_the_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"/one cannot be read \(No such file"):
        config.from_kubeconfig([tmp_path / "one"])
    with pytest.raises(BadConfig, match=r"none of .*/one, .*/two exists"):
        config.from_kubeconfig([tmp_path / "one", tmp_path / "two"])


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def service_account(folder: Path) -> Path:
    for name, text in (("token", "t0ken"), ("ca.crt", "CA"), ("namespace", "maestro\n")):
        write(folder / name, text)
    return folder


def test_service_account_of_a_pod(tmp_path: Path) -> None:
    account = service_account(tmp_path / "sa")
    assert config.from_service_account(POD, service_account=account) == ClusterAddress(
        server="https://10.0.0.1:443",
        ca=Pem(file=account / "ca.crt"),
        credentials=Credentials(token_file=account / "token"),
        namespace="maestro",
        origin=str(account),
    )
    six = POD | {"KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert config.from_service_account(six, service_account=account).server == "https://[fd00::1]:443"


def test_pod_without_a_token(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="token is missing: the pod has no service account token"):
        config.from_service_account(POD, service_account=tmp_path)


@pytest.mark.parametrize(
    ("flag", "environ", "server"),
    [
        pytest.param("named", POD | {"KUBECONFIG": "{}/env"}, "https://named", id="path"),
        pytest.param("", POD | {"KUBECONFIG": "{}/env"}, "https://10.0.0.1:443", id="pod"),
        pytest.param("", {"KUBECONFIG": "{0}/missing:{0}/env"}, "https://env", id="environment"),
        pytest.param("", {"KUBECONFIG": ""}, "https://home", id="home"),
    ],
)
def test_lookup_order(tmp_path: Path, flag: str, environ: dict[str, str], server: str) -> None:
    for name, path in (("named", "named"), ("env", "env"), ("home", "home/.kube/config")):
        write(tmp_path / path, json.dumps(kubeconfig(cluster={"server": f"https://{name}"})))
    address = config.locate(
        str(tmp_path / flag) if flag else "",
        environ={name: value.format(tmp_path) for name, value in environ.items()},
        home=tmp_path / "home",
        service_account=service_account(tmp_path / "sa"),
    )
    assert address.server == server


def test_no_kubeconfig(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="name a kubeconfig file"):
        config.locate("", environ={}, home=tmp_path)
