"""What leaves for a browser has no secret values."""

from typing import Any

import orjson

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
