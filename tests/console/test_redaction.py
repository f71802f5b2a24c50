"""What leaves for a browser has no secret values."""

from typing import Any

import orjson
import pytest

from maestropy.console import redaction

_SECRET_TEXT = "hunter2-is-secret"


def test_manifest_of_a_secret_shows_names_only() -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"pw": _SECRET_TEXT}}
    text, is_cut = redaction.manifest_text(manifest)
    assert "pw: '[redacted]'" in text
    assert _SECRET_TEXT not in text
    assert not is_cut


def test_values_of_environment_variables_and_credentials_are_hidden() -> None:
    container = {"name": "c", "env": [{"name": "MODE", "value": _SECRET_TEXT}], "args": [f"--password={_SECRET_TEXT}"]}
    nested = {"kind": "ManifestWork", "spec": {"manifests": [{"kind": "Secret", "data": {"k": _SECRET_TEXT}}]}}
    for manifest in ({"kind": "Pod", "spec": {"containers": [container]}}, nested):
        assert _SECRET_TEXT not in redaction.manifest_text(manifest)[0]


def test_large_manifest_is_cut() -> None:
    manifest = {"kind": "ConfigMap", "metadata": {"name": "n"}, "data": {f"k{n}": "v" * 1000 for n in range(2000)}}
    text, is_cut = redaction.manifest_text(manifest)
    assert is_cut
    assert len(text) == redaction.LONGEST_TEXT


def test_unprintable_characters_of_a_manifest_are_escaped() -> None:
    text, _ = redaction.manifest_text({"kind": "ConfigMap", "data": {"k": "a\u202eb\x1b[31m"}})
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_what_a_cluster_said_of_a_secret_is_hidden_in_a_traced_work() -> None:
    condition = {"type": "Applied", "status": "False", "reason": "R", "message": f"value {_SECRET_TEXT} is bad"}
    model: dict[str, Any] = {
        "manifests": [
            {
                "gvk": {"group": "", "kind": "Secret", "resource": "secrets"},
                "feedback": {"f": _SECRET_TEXT},
                "conditions": [condition],
            },
        ],
        "findings": [
            {
                "code": "MW-005",
                "evidence": [
                    {"where": "Secret/default/s", "says": f"Applied=False: {_SECRET_TEXT}"},
                    {"where": "the work", "says": f"Applied=False: {_SECRET_TEXT}"},
                    {"where": "ConfigMap/default/c", "says": "Applied=False: quota"},
                ],
            }
        ],
        "db": {"status": {"conditions": [condition]}},
    }
    cleaned = redaction.work_model(model)
    assert _SECRET_TEXT.encode() not in orjson.dumps(cleaned)
    assert cleaned["manifests"][0]["feedback"] == {"f": "[redacted]"}
    assert cleaned["findings"][0]["evidence"][2]["says"] == "Applied=False: quota"
    assert cleaned["findings"][0]["evidence"][0]["says"] == "Applied=False: [redacted]"


def config_map(text: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": text}}


def spec(**fields: Any) -> dict[str, Any]:
    return {"kind": "Foo", "metadata": {"name": "f"}, "spec": fields}


def secret(**metadata: Any) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": "s", **metadata}}


_LEAK = "LEAKED-1"
_HIDING = {
    "token-line": config_map(f"user: x\ntoken: {_LEAK}\n"),
    "indented-token": config_map(f"db:\n  api_key: a\n  token: {_LEAK}\n"),
    "key-data": config_map(f"users:\n- name: a\n  user:\n    client-key-data: {_LEAK}\n"),
    "block": config_map(f"password: |\n  {_LEAK}\nuser: x\n"),
    "flow": config_map(f"db: {{user: x, token: {_LEAK}}}"),
    "docker": config_map(f'{{"auths": {{"r": {{"auth": "{_LEAK}"}}}}}}'),
    "docker-field": spec(auths={"r": {"auth": _LEAK}}),
    "two-items": spec(args=["--verbose", "--token", _LEAK]),
    "export": config_map(f"A=b\nexport DB_PASS={_LEAK}"),
    "netrc": config_map(f"machine h login u password {_LEAK}"),
    "npmrc": config_map(f"//r/:_authToken={_LEAK}"),
    "embedded-secret": config_map(f"apiVersion: v1\nkind: Secret\nstringData:\n  foo: {_LEAK}\n"),
    "embedded-variable": config_map(f"env:\n- name: FOO\n  value: {_LEAK}\n"),
    "credentials": spec(credentials={"a": _LEAK}),
    "nested-credentials": spec(credentials={"a": {"b": [_LEAK]}}),
    "key-of-credentials": spec(credentials={"key": _LEAK, "name": {"x": _LEAK}}),
    "nested-variables": spec(envVars={"FOO": {"value": _LEAK}}),
    "ssh-key": spec(sshKey=_LEAK),
    "bearer": spec(bearer=_LEAK),
    "connection-string": spec(connectionString=_LEAK),
    "kubeconfig": spec(kubeconfig=_LEAK),
    "dsn": spec(dsn=_LEAK),
    "dsn-in-text": spec(target=f"user:{_LEAK}@tcp(h:3306)/db"),
    "variables": spec(envVars={"FOO": _LEAK}),
    "access-key-id": spec(accessKeyId=_LEAK),
    "annotation": secret(annotations={"n": _LEAK}),
    "label": secret(labels={"n": _LEAK}),
    "nested-secret": spec(workload={"manifests": [secret(annotations={"n": _LEAK})]}),
    "list": {"kind": "SecretList", "items": [{"metadata": {"name": "s", "labels": {"l": _LEAK}}}]},
    "last-applied": {
        "kind": "Foo",
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data": "{_LEAK}"}}'}},
    },
    "random": config_map("R4nd0mTok3nAbCdEfGhIjKlMnOpQrStUvWxYz-LEAKED-1"),
}


@pytest.mark.parametrize("manifest", _HIDING.values(), ids=_HIDING)
def test_credential_is_hidden_wherever_it_stands(manifest: dict[str, Any]) -> None:
    assert _LEAK in str(manifest)
    assert _LEAK not in redaction.manifest_text(manifest)[0]


def test_what_is_no_credential_stays() -> None:
    kept = spec(
        image="quay.io/a/b@sha256:" + "0123456789abcdef" * 4,
        imagePullSecrets=[{"name": "pull"}],
        volumes=[{"name": "v", "secret": {"secretName": "tls-of-web"}}],
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "pw-of-db"}}}],
        serviceAccountName="web",
        args=["--replicas", "3"],
        automountServiceAccountToken=False,
    )
    text, _ = redaction.manifest_text(kept)
    for word in ("0123456789abcdef", "pull", "tls-of-web", "pw-of-db", "web", "--replicas", "false"):
        assert word in text, word
    assert "redacted" not in text


def test_feedback_under_the_name_of_a_secret_is_hidden() -> None:
    manifest = {
        "gvk": {"group": "", "kind": "ConfigMap", "resource": "configmaps"},
        "feedback": {"pw": _LEAK, "connectionString": _LEAK, "url": f"token: {_LEAK}", "replicas": 3, "phase": "Ready"},
        "conditions": [],
    }
    cleaned = redaction.work_model({"manifests": [manifest], "findings": [], "db": None})["manifests"][0]
    assert _LEAK.encode() not in orjson.dumps(cleaned)
    assert (cleaned["feedback"]["replicas"], cleaned["feedback"]["phase"]) == (3, "Ready")
