"""The tools over archives: what they answer, and that bad input gets an error with a remedy."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it has no stubs

from maestropy.diagnose import manifest
from maestropy.mcp import answers, definitions, texts, tools
from maestropy.mcp.answers import Result
from maestropy.mcp.tools import Answer, Options, Toolbox
from maestropy.trace.errors import InputUnreadable
from tests.unit.diagnose import archives, planted
from tests.unit.mcp.injections import CORPUS

MOST_TOKENS = 4_000
ARCHIVE = Path("test.tar.zst")
LOG = "logs/files/server.log"


def history(number: int, **more: Any) -> dict[str, Any]:
    kind = "work.updated" if number > 1 else "work.created"
    entry = {"trace": "history", "id": str(number), "time": f"2026-08-20T10:0{number}:00Z", "kind": kind}
    return {
        **entry,
        "consumer_name": "c1",
        "resource_id": "id-1",
        "version": number,
        "detail": {"changes": ["/a"]},
        **more,
    }


def files(**more: str) -> dict[str, str]:
    rows = [
        archives.row(1, applied="False", message="denied by a webhook"),
        archives.row(2),
        archives.row(3, consumer="c2"),
    ]
    return {
        "database/rows.jsonl": archives.lines(*rows),
        "server/consumers.jsonl": archives.lines({"name": "c1", "id": "1"}, {"name": "c2", "id": "2"}),
        "server/history.jsonl": archives.lines(history(2), history(1)),
        LOG: "".join(f"I0820 10:00:{number:02d}.000000 1 server.go:1] line {number}\n" for number in range(60)),
        **more,
    }


@asynccontextmanager
async def box_of(folder: Path, content: dict[str, str] | None = None, **about: Any) -> AsyncIterator[Toolbox]:
    written = manifest.Manifest(version="0.2.0", collected_at=archives.NOW, **about)
    path = archives.of_files(folder / "test.tar.zst", content if content is not None else files(), about=written)
    async with tools.opened(Options(archives=(path,))) as box:
        yield box


async def right(box: Toolbox, name: str, **arguments: Any) -> dict[str, Any]:
    answer = await box.call(name, arguments)
    assert not answer.is_error, answer.text
    assert answers.tokens(answer.text) < MOST_TOKENS
    assert json.loads(answer.text) == answer.model
    return dict(answer.model)


async def wrong(box: Toolbox, name: str, **arguments: Any) -> str:
    answer = await box.call(name, arguments)
    assert answer.is_error, answer.text
    assert answer.model["remedy"]
    assert "Traceback" not in answer.text
    return answer.text


def test_schemas_are_valid_and_precise() -> None:
    for tool in definitions.listed(allows_actions=True):
        Draft202012Validator.check_schema(tool.schema)
        assert tool.schema["additionalProperties"] is False
        assert all(field.get("description") for field in tool.schema["properties"].values()), tool.name
        assert set(tool.required) <= set(tool.schema["properties"])
        assert tool.is_read_only or tool.name == "perform_action"
    names = [tool.name for tool in definitions.listed(allows_actions=False)]
    assert len(names) == 12
    assert {"plan_action", "perform_action"}.isdisjoint(names)


async def test_tools_answer_and_evidence_opens(tmp_path: Path) -> None:
    async with box_of(tmp_path) as box:
        fleet = await right(box, "fleet")
        assert fleet["totals"]["works"] == 3
        assert fleet["totals"]["errors"] == 1
        assert fleet["items"][0]["problem"] == "MW-005"
        found = await right(box, "find", text="is:broken")
        assert [item["work"] for item in found["items"]] == ["work-1"]
        stuck = await right(box, "stuck")
        assert stuck["items"][0]["code"] == "MW-005"
        assert (await right(box, "stuck", consumer="c2"))["groups"] == 0
        traced = await right(box, "trace_work", work="work-1")
        assert traced["code"] == "MW-005"
        ids = [evidence["id"] for item in traced["items"] if "finding" in item for evidence in item["evidence"]]
        assert "database/rows.jsonl:1" in ids
        for evidence in {*ids, "row:id-1", "consumer:c2", *stuck["items"][0]["works"][0]["evidence"].split()}:
            assert (await right(box, "archive", evidence=evidence))["evidence"] == evidence or evidence.startswith(
                ("row:", "consumer:")
            )
        entries = await right(box, "history", work="work-1")
        assert [item["version"] for item in entries["items"]] == [2, 1]
        assert (await right(box, "archive", evidence=entries["items"][0]["evidence"]))["items"]
        changed = await right(box, "diff", work="work-1")
        assert [item["version"] for item in changed["items"]] == [2]
        checked = await right(box, "check")
        assert checked["errors"] == 1
        assert (await right(box, "check", part="broker"))["errors"] == 0
        around = await right(box, "logs_around", evidence=f"{LOG}:30", before=2, after=1)
        assert sorted(item["line"] for item in around["items"]) == [28, 29, 30, 31]
        assert (await right(box, "explain", code="mw-005"))["code"] == "MW-005"
        assert (await right(box, "explain"))["codes"] > 100
        assert (await right(box, "archive"))["schema"] == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nothing", {}),
        ("perform_action", {"action": "pause", "target": "c1", "plan": "x"}),
        ("trace_work", {}),
        ("trace_work", {"work": "a/b/c/d"}),
        ("trace_work", {"work": "x\0y"}),
        ("trace_work", {"work": "x" * 301}),
        ("trace_work", {"work": 1}),
        ("trace_work", {"work": "work-1", "other": True}),
        ("trace_request", {"identifier": "work-1"}),
        ("trace_hcp", {"identifier": "x"}),
        ("fleet", {"text": "no-such-consumer"}),
        ("stuck", {"consumer": "no-such-consumer"}),
        ("find", {"text": "is:nonsense"}),
        ("find", {"text": "source:s"}),
        ("history", {"work": "no-such-work"}),
        ("explain", {"code": "MW-999"}),
        ("logs_around", {}),
        ("logs_around", {"evidence": "../../etc/passwd:1"}),
        ("logs_around", {"evidence": "/etc/passwd:1"}),
        ("logs_around", {"evidence": f"{LOG}:100000"}),
        ("logs_around", {"evidence": f"{LOG}:1", "before": 1_000_000}),
        ("diff", {}),
        ("check", {"part": "weather"}),
        ("archive", {"evidence": "seen:00000000"}),
        ("archive", {"evidence": "row:no-such-work"}),
        ("archive", {"evidence": "../manifest.json:1"}),
        ("find", {"cursor": "find-1:0"}),
        ("find", {"cursor": "no cursor"}),
    ],
    ids=str,
)
async def test_bad_input_gets_an_error_with_a_remedy(tmp_path: Path, name: str, arguments: dict[str, Any]) -> None:
    async with box_of(tmp_path) as box:
        await wrong(box, name, **arguments)


async def test_work_that_does_not_exist_is_named_as_not_found(tmp_path: Path) -> None:
    async with box_of(tmp_path) as box:
        assert "no-such-work was not found" in await wrong(box, "trace_work", work="no-such-work")


async def test_ambiguous_name_lists_the_candidates(tmp_path: Path) -> None:
    other = archives.row(9, consumer="c2")
    other["payload"]["metadata"]["name"] = "work-1"
    content = files(**{"database/rows.jsonl": archives.lines(archives.row(1), other)})
    async with box_of(tmp_path, content) as box:
        answer = await right(box, "trace_work", work="work-1")
        assert sorted(item["candidate"]["resourceId"] for item in answer["items"] if "candidate" in item) == [
            "id-1",
            "id-9",
        ]
        assert "id-9 of c2" in await wrong(box, "history", work="work-1")
        assert (await right(box, "trace_work", work="work-1", consumer="c2"))["id"] == "id-9"


async def test_answers_stay_under_the_bound_with_many_works(tmp_path: Path) -> None:
    message = "admission webhook denied the request: " + "very long reason " * 40
    rows = [archives.row(each, consumer=f"c{each % 40}", applied="False", message=message) for each in range(300)]
    manifests = rows[0]["payload"]["data"]["manifests"]
    manifests += [{**manifests[0], "metadata": {"name": f"more-{number}", "namespace": "d"}} for number in range(300)]
    content = files(**{"database/rows.jsonl": archives.lines(*rows)})
    async with box_of(tmp_path, content) as box:
        calls: list[tuple[str, dict[str, Any]]] = [
            (name, {}) for name in ("fleet", "find", "stuck", "check", "history")
        ]
        calls += [
            ("trace_work", {"work": "id-0"}),
            ("trace_work", {"work": "work-5"}),
            ("archive", {}),
            ("explain", {}),
        ]
        calls += [("archive", {"evidence": "row:id-0"})]
        calls += [("logs_around", {"evidence": f"{LOG}:30", "before": 200, "after": 200})]
        for name, arguments in calls:
            await right(box, name, **arguments)
        seen: list[str] = []
        answer: Answer = await box.call("find", {})
        while True:
            seen += [item["id"] for item in answer.model["items"]]
            assert answers.tokens(answer.text) < MOST_TOKENS
            if not answer.cursor:
                break
            answer = await box.call("find", {"cursor": answer.cursor})
        assert sorted(seen) == sorted(row["id"] for row in rows)


async def test_cursors_belong_to_one_tool_and_session(tmp_path: Path) -> None:
    rows = [archives.row(number) for number in range(60)]
    async with box_of(tmp_path, files(**{"database/rows.jsonl": archives.lines(*rows)})) as box:
        cursor = (await box.call("find", {})).cursor
        assert not (await box.call("find", {"cursor": cursor})).is_error
        await wrong(box, "stuck", cursor=cursor)
        await wrong(box.another(), "find", cursor=cursor)
        await wrong(box, "find", cursor=cursor + "9" * 20)


async def test_injected_text_stays_data(tmp_path: Path) -> None:
    rows = [archives.row(number, applied="False", message=text[:3000]) for number, text in enumerate(CORPUS)]
    for row, text in zip(rows, CORPUS, strict=True):
        row["payload"]["metadata"]["labels"] = {"note": text[:200]}
    log = "".join(f"I0820 10:00:00.000000 1 a.go:1] {' '.join(text.split())[:2000]}\n" for text in CORPUS)
    async with box_of(tmp_path, files(**{"database/rows.jsonl": archives.lines(*rows), LOG: log})) as box:
        calls: list[tuple[str, dict[str, Any]]] = [("find", {}), ("stuck", {}), ("fleet", {}), ("check", {})]
        calls += [("trace_work", {"work": f"id-{number}"}) for number in range(len(CORPUS))]
        calls += [("logs_around", {"evidence": f"{LOG}:5", "before": 20, "after": 20})]
        for name, arguments in calls:
            answer = await right(box, name, **arguments)
            for text in _strings(answer):
                assert text.isprintable()
                if "perform_action" in text or "SYSTEM" in text or "nstructions" in text:
                    marked = text.startswith(texts.BEGIN) and text.endswith(texts.END)
                    assert marked or text == texts.NOTICE, text
                    assert texts.END not in text[1:-1] or text == texts.NOTICE


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *_strings(item))]
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []


async def test_secrets_in_a_foreign_archive_are_hidden(tmp_path: Path) -> None:
    """An archive that something else has packed may hold what ours would have hidden."""
    secrets = planted.secrets()
    rows = []
    for number, secret in enumerate(secrets):
        row = archives.row(number, applied="False", message=f"cannot log in with {secret} to the registry")
        row["payload"]["metadata"]["labels"] = {"key": secret}
        row["payload"]["data"]["manifests"][0]["data"] = {"config": secret}
        rows.append(row)
    log = "".join(f"I0820 10:00:00.000000 1 a.go:1] token {secret} is wrong\n" for secret in secrets)
    async with box_of(tmp_path, files(**{"database/rows.jsonl": archives.lines(*rows), LOG: log})) as box:
        told = ""
        for name in ("find", "stuck", "fleet", "check"):
            answer = await box.call(name, {})
            told += answer.text
            while answer.cursor:
                answer = await box.call(name, {"cursor": answer.cursor})
                told += answer.text
        for number in range(0, 200, 25):
            told += (await box.call("trace_work", {"work": f"id-{number}"})).text
            told += (await box.call("archive", {"evidence": f"row:id-{number}"})).text
            told += (await box.call("logs_around", {"evidence": f"{LOG}:{number + 1}"})).text
    assert not [secret for secret in secrets if secret in told]


async def test_archive_that_is_cut_short_is_answered_as_far_as_it_goes(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(1 << 20).hex()
    whole = archives.of_files(tmp_path / "whole.tar.zst", files(**{"logs/files/noise.log": noise}))
    cut = tmp_path / "cut.tar.zst"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    async with tools.opened(Options(archives=(cut,))) as box:
        answer = await right(box, "archive")
        assert answer["isCut"] is True
        assert any("cut short" in text or "not read" in text for text in answer["unknown"])
        assert (await right(box, "check"))["items"]


async def test_archive_of_a_newer_schema_says_what_is_unknown(tmp_path: Path) -> None:
    async with box_of(tmp_path, schema=99) as box:
        answer = await right(box, "check")
        assert "MD-003" in [item["finding"] for item in answer["items"]]
        assert any("schema 99" in text for text in answer["unknown"])


async def test_unreadable_archive_is_refused_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "no.tar.zst"
    path.write_bytes(b"no archive")
    with pytest.raises(InputUnreadable, match="diagnose collect"):
        async with tools.opened(Options(archives=(path,))):
            pass


async def test_two_archives_are_compared(tmp_path: Path) -> None:
    before = archives.of_files(tmp_path / "before.tar.zst", files())
    after = archives.of_files(
        tmp_path / "after.tar.zst", files(**{"database/rows.jsonl": archives.lines(archives.row(2))})
    )
    async with tools.opened(Options(archives=(after, before))) as box:
        answer = await right(box, "diff")
        assert "MW-005" in [item["finding"] for item in answer["items"] if item["change"] == "gone"]
        assert answer["worksWithAnotherVerdict"] == 2
        await wrong(box, "diff", before="other.tar.zst")


class _Slow:
    description = "a system that does not respond"

    def handlers(self) -> dict[str, Any]:
        async def fleet(_: Any) -> Result:
            await asyncio.Event().wait()
            raise AssertionError

        return {"fleet": fleet}


async def test_time_limit_and_cancellation(monkeypatch: pytest.MonkeyPatch) -> None:
    box = Toolbox(_Slow())
    call = asyncio.ensure_future(box.call("fleet", {}))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    quick = [definitions.Tool(name="fleet", title="", description="", arguments=definitions.Fleet, seconds=0.01)]
    monkeypatch.setattr(box, "listed", quick)
    assert "did not end within" in await wrong(box, "fleet")
