import json
from datetime import timedelta

from maestropy.journal import jsonl
from maestropy.journal.record import Record

NOON = 1768478400.25


def test_record_is_one_json_line() -> None:
    record = Record(
        "error", 2, NOON, 7, "x.py:1", "m", "boom", jsonl.pairs({"op-id": "1"}), {"b": {"c": [1]}, "a": "é\n"}
    )
    assert jsonl.line(record) == (
        '{"ts":"2026-01-15T12:00:00.250000Z","level":"error","v":2,"caller":"x.py:1","msg":"m","err":"boom",'
        '"op-id":"1","b":{"c":[1]},"a":"é\\n"}\n'
    )


def test_field_with_a_reserved_key_is_prefixed() -> None:
    line = jsonl.line(Record("info", 0, NOON, 7, "x.py:1", "m", None, "", {"msg": "other", "v": 3}))
    assert json.loads(line, object_pairs_hook=list)[-3:] == [("msg", "m"), ("_msg", "other"), ("_v", 3)]


def test_values_without_a_json_type_are_text() -> None:
    values = {"age": timedelta(seconds=90), "cause": ValueError("bad"), "raw": b"\xffa", "half": "\ud800"}
    line = jsonl.line(Record("info", 0, NOON, 7, "x.py:1", "m", None, "", values))
    assert list(json.loads(line).values())[-4:] == ["1m30s", "bad", "\ufffda", "\ufffd"]
