"""Everything that enters an archive passes the redactor: by position, by key, by format and by randomness."""

import json
import random
import string
from typing import Any

import pytest

from maestropy.diagnose.redaction import detectors
from maestropy.diagnose.redaction.redact import LogRedactor, Redactor
from tests.unit.diagnose import planted

PLAIN = "hunter2"
"""A secret that no detector can recognise: only its position gives it away."""


def cleaned(document: dict[str, Any]) -> str:
    return json.dumps(Redactor().document(document))


def _object(kind: str = "Deployment", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n", "namespace": "d"}, **fields}


def _pod(**container: Any) -> dict[str, Any]:
    return _object(spec={"template": {"spec": {"containers": [{"name": "c", **container}]}}})


@pytest.mark.parametrize(
    "document",
    [
        _object("Secret", data={"k": PLAIN}),
        _object("Secret", stringData={"k": PLAIN}),
        {"kind": "SecretList", "items": [{"metadata": {"name": "n"}, "data": {"k": PLAIN}}]},
        _object("ConfigMap", data={"k": PLAIN}),
        _object("ConfigMap", binaryData={"k": PLAIN}),
        _pod(env=[{"name": "A", "value": PLAIN}]),
        _pod(env=[{"name": "A", "value": PLAIN, "x": 1}]),
        _pod(args=["run", PLAIN]),
        _pod(args=[f"--cache={PLAIN}"]),
        _pod(args=["--cache", PLAIN]),
        _pod(command=["/bin/sh", "-c", f"login {PLAIN}"]),
        _object(metadata={"name": "n", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": PLAIN}}),
        _object("Custom", spec={"script": f"echo {PLAIN}\nexit"}),
        _object("Custom", spec={"adminPassword": PLAIN}),
        _object("Custom", spec={"list": [{"token": PLAIN}]}),
        {"payload": {"data": {"manifests": [_object("Secret", data={"k": PLAIN})]}}},
        {"payload": {"data": json.dumps({"manifests": [_object("Secret", data={"k": PLAIN})]})}},
        _object("ManifestWork", spec={"workload": {"manifests": [_object("Secret", data={"k": PLAIN})]}}),
        _object("Custom", status={"conditions": [{"message": f"password={PLAIN}"}]}),
        _pod(image=f"user:{PLAIN}@registry.example/x:1"),
        _object("Custom", spec={"env": {"A": PLAIN}}),
        _object("Custom", spec={"csi": {"volumeAttributes": {"a": PLAIN}}}),
        _object(metadata={"name": "n", "labels": {"password-of-db": PLAIN}}),
        _object("Custom", spec={"parameters": [{"name": "db-password", "value": PLAIN, "type": "t"}]}),
        {"trace": "history", "detail": {"digest": PLAIN, "changes": [{"name": "replicas", "digest": PLAIN}]}},
        {"trace": "history", "detail": json.dumps({"digest": PLAIN})},
        {"url": f"https://user:{PLAIN}@host/path"},
    ],
    ids=lambda document: json.dumps(document)[:60],
)
def test_secret_is_hidden_by_its_position(document: dict[str, Any]) -> None:
    assert PLAIN in json.dumps(document)
    assert PLAIN not in cleaned(document)


def test_what_verdicts_rest_on_stays() -> None:
    hub = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    work_id = "50526672-ee51-5ad7-8339-dfcced710db6"
    message = 'deployments.apps "nginx" is forbidden: exceeded quota: compute, requested: cpu=2'
    document = {
        "id": work_id,
        "consumer_name": "cluster1",
        "version": 3,
        "deleted_at": None,
        "payload": {"metadata": {"name": "2ppsfca8u7368uin9koq9aq1b183mqke", "labels": {"a": "b"}}, "statushash": hub},
        "applied": {
            "kind": "AppliedManifestWork",
            "metadata": {"name": f"{hub}-{work_id}"},
            "spec": {"hubHash": hub, "agentID": hub, "manifestWorkName": "w"},
        },
        "status": {"conditions": [{"type": "Applied", "reason": "AppliedManifestWorkFailed", "message": message}]},
    }
    assert Redactor().document(document) == document


@pytest.mark.parametrize(
    "line",
    [
        'I1117 23:04:01.087024   20327 x.py:134] "Publishing" resourceID="50526672-ee51-5ad7-8339-dfcced710db6"',
        "E1117 23:04:01.087024       1 x.go:1] failed: customresourcedefinitions.apiextensions.k8s.io/v1beta1",
        '{"ts":"2026-11-17T23:04:01.087Z","type":"io.open-cluster-management.works.v1alpha1.manifestbundles"}',
        "ProgressDeadlineExceeded MinimumReplicasUnavailable GET /api/maestro/v1/consumers?orderBy=id",
    ],
)
def test_line_without_secrets_is_not_changed(line: str) -> None:
    assert LogRedactor(Redactor()).line(line) == line


def test_block_of_a_key_over_many_lines_is_hidden_to_its_end() -> None:
    body = ["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ", "short", "Zg=="]
    block = ["-----BEGIN PRIVATE KEY-----", *body, "-----END PRIVATE KEY-----", "after"]
    redactor = LogRedactor(Redactor())
    shown = [redactor.line(line) for line in block]
    assert not any(part in line for part in body for line in shown)
    assert shown[-1] == "after"


def test_block_without_an_end_does_not_hide_the_rest_of_the_log() -> None:
    redactor = LogRedactor(Redactor())
    redactor.line("-----BEGIN PRIVATE KEY-----")
    assert [redactor.line("a line") for _ in range(500)][-1] == "a line"


@pytest.mark.parametrize("secret", planted.secrets(), ids=lambda secret: secret[:10])
def test_detectors_find_planted_secret_in_any_sentence(secret: str) -> None:
    for text in (f"login with {secret} failed", f'"{secret}"', f"x={secret},y=1", f"\t{secret}\\n", f"({secret})"):
        assert secret not in detectors.clean(text)


def test_detectors_miss_few_random_texts() -> None:
    chance = random.Random(1)
    texts = ["".join(chance.choices(string.ascii_letters + string.digits, k=24)) for _ in range(2000)]
    assert sum(not detectors.is_suspect(text) for text in texts) <= 4


def test_redacting_twice_changes_nothing_more() -> None:
    once = detectors.clean(" ".join(planted.secrets()))
    assert detectors.clean(once) == once


def test_reference_of_an_image_stays() -> None:
    image = "registry.example:5000/team/nginx:1.2@sha256:" + "a1" * 32
    document = {"spec": {"image": image}}
    assert Redactor().document(document) == document
