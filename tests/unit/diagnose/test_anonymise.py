"""Pseudonyms are the same everywhere, say nothing, keep the structure, and are turned back with the key only."""

import json

from maestropy.diagnose.redaction import anonymise
from maestropy.diagnose.redaction.anonymise import Key, Pseudonyms

KEY = Key(key="00" * 32)


def with_names(**names: list[str]) -> Pseudonyms:
    pseudonyms = Pseudonyms(KEY)
    for kind, several in names.items():
        pseudonyms.add(kind, several)
    return pseudonyms


def test_name_has_one_pseudonym_in_documents_texts_paths_and_longer_names() -> None:
    names = with_names(consumer=["us-east-mgmt-01"], object=["nginx"])
    consumer = names.text("us-east-mgmt-01")
    assert consumer.startswith("consumer-")
    assert names.value({"a": ["us-east-mgmt-01"]}) == {"a": [consumer]}
    assert names.text('"us-east-mgmt-01" clusters/us-east-mgmt-01/x.log') == f'"{consumer}" clusters/{consumer}/x.log'
    assert names.text("nginx-7d9f8b6c5-x2x9z") == f"{names.text('nginx')}-7d9f8b6c5-x2x9z"
    assert names.text("nginxx enginx") == "nginxx enginx"
    escaped = names.text(r"consumer+%3D+%27us-east-mgmt-01%27 \nus-east-mgmt-01 \x22us-east-mgmt-01")
    assert escaped == rf"consumer+%3D+%27{consumer}%27 \n{consumer} \x22{consumer}"


def test_same_key_gives_the_same_pseudonyms_and_another_key_others() -> None:
    first, again = with_names(work=["hello"]).text("hello"), with_names(work=["hello"]).text("hello")
    other = Pseudonyms(Key(key="11" * 32))
    other.add("work", ["hello"])
    assert first == again != other.text("hello")


def test_resource_id_stays_a_uuid_and_address_an_address_of_nobody() -> None:
    names = with_names(id=["50526672-ee51-5ad7-8339-dfcced710db6"])
    assert len(names.text("50526672-ee51-5ad7-8339-dfcced710db6")) == 36
    shown = names.text("10.20.30.40:8090 127.0.0.1:1 [2001:4860:4860::8888]:443 at 22:37:39")
    assert "10.20.30.40" not in shown
    assert "4860" not in shown
    assert shown.startswith("240.")
    assert "127.0.0.1:1" in shown
    assert shown.endswith("at 22:37:39")


def test_words_of_log_messages_are_not_replaced() -> None:
    names = with_names(work=["publishing", "resource", "default", "metadata"])
    text = "Publishing resource publishing default metadata"
    assert names.text(text) == text


def test_key_turns_a_report_back() -> None:
    names = with_names(consumer=["us-east-mgmt-01"], work=["hello"])
    text = "work hello of us-east-mgmt-01 at 10.1.2.3"
    hidden = names.text(text)
    assert anonymise.reveal(hidden, Key(key=KEY.key, names=dict(names.names))) == text
    assert anonymise.reveal(hidden, KEY) == hidden


def test_names_are_found_by_their_place() -> None:
    found: dict[str, set[str]] = {}
    namespace = {"kind": "Namespace", "metadata": {"name": "ns-1"}}
    document = {
        "consumer_name": "c-1",
        "id": "i-1",
        "payload": {"metadata": {"name": "w-1", "labels": {"team": "t-1"}}},
        "manifests": [namespace, {"metadata": {"name": "o-1", "namespace": "ns-2"}}],
    }
    anonymise.names_in(json.loads(json.dumps(document)), found=found)
    names = {name for several in found.values() for name in several}
    assert names >= {"c-1", "i-1", "w-1", "t-1", "ns-1", "o-1", "ns-2"}


def test_users_of_hosts_and_paths_of_files_are_replaced_and_turned_back() -> None:
    names = with_names()
    text = "by root@vm-17: ask jane.doe@corp.example; open /home/jane/maestro/server.log:12 failed, GET /api/maestro/v1"
    hidden = names.text(text)
    assert not any(word in hidden for word in ("root", "vm-17", "jane", "corp", "/home"))
    assert hidden.endswith("GET /api/maestro/v1")
    assert ":12 failed" in hidden
    assert names.text("nginx@sha256:abc") == "nginx@sha256:abc"
    assert anonymise.reveal(hidden, Key(key=KEY.key, names=dict(names.names))) == text
