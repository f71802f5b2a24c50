# ruff: noqa: E501 - log lines are as long as they are
"""The HTML report: one file without network, with all data, in which log text never becomes markup."""

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.cli import main
from maestropy.trace.report.log_lines import shown_line
from maestropy.trace.report.page import page
from tests.trace_request_logs import AGENT, BASE, LoggedRequest, klog, write

HOSTILE = '</script><script>alert("x")</script><img src=x onerror=alert(1)> {{script}} \u2028'


def model_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="data">([^<]*)</script>', text)
    assert found
    model: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found.group(1))))
    return model


def made(tmp_path: Path, *words: str) -> tuple[int, str]:
    out = tmp_path.parent / f"{tmp_path.name}.html"
    code = main.call(["trace", "requests", str(tmp_path), "--html", str(out), *words])
    return code, out.read_text(encoding="utf-8")


def test_page_contains_every_request_with_its_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logged_requests = [LoggedRequest(work="nginx"), LoggedRequest(work="stopped", at=BASE + 1, until=3)]
    write(tmp_path, logged_requests)
    code, text = made(tmp_path)
    assert code == 1
    assert "2 requests" in capsys.readouterr().out  # the usual report is printed as well
    model = model_of(text)
    columns = model["columns"]
    rows = {name: row for row, name in enumerate(columns["work"])}
    nginx, stopped = rows["nginx"], rows["stopped"]
    assert columns["resource"][nginx] == logged_requests[0].resource
    assert [model["verdicts"][columns["verdict"][row]] for row in (nginx, stopped)] == ["complete", "incomplete"]
    assert columns["states"][nginx] == "0" * 9
    assert columns["times"][nginx][1] == 410  # tenths of milliseconds
    assert (columns["failed"][stopped], model["findings"][str(stopped)][0][0]) == (4, "MT-412")
    flat = columns["records"][nginx]
    records = [flat[at : at + 5] for at in range(0, len(flat), 5)]
    assert [record[1] for record in records] == sorted(record[1] for record in records)
    file, line = records[0][2:4]
    assert "receive the event from client" in model["lines"][f"{file}:{line}"]
    assert model["texts"][records[0][4]].startswith("receive the event from client")


def test_html_is_an_output_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, [LoggedRequest(work="nginx")])
    assert main.call(["trace", "request", "nginx", str(tmp_path), "-o", "html"]) == 0
    assert model_of(capsys.readouterr().out)["columns"]["work"] == ["nginx"]


def test_security_policy_allows_only_own_script_and_style(tmp_path: Path) -> None:
    write(tmp_path, [LoggedRequest(work="nginx")])
    _, text = made(tmp_path)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert policy
    assert policy.group(1).startswith("default-src 'none'; ")
    for tag in ("style", "script"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert body
        digest = base64.b64encode(hashlib.sha256(body.group(1).encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy.group(1)
    assert "unsafe" not in policy.group(1)
    # A namespace of SVG is a name, not an address.
    addresses = set(re.findall(r"https?://[^\s'\"]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not addresses
    assert not re.search(r'\bstyle="|\bon\w+="', text)


def test_hostile_lines_stay_data(tmp_path: Path) -> None:
    bad = LoggedRequest(work="bad", until=3)
    write(tmp_path, [bad])
    log = tmp_path / f"{AGENT}.log"
    err = HOSTILE.replace('"', '\\"')
    line = klog(BASE + 0.2, "base_controller.go:159", f'"controller failed to sync" err="{err}" key="{bad.resource}"', "E")  # fmt: skip
    log.write_text(log.read_text().replace("I0115 09:10", f"{line}\nI0115 09:10"), encoding="utf-8")
    _, text = made(tmp_path)
    assert "alert(" not in text
    assert text.count("</script>") == 2
    assert "alert(1)" in json.dumps(model_of(text)["findings"])


@given(st.text())
def test_any_text_keeps_the_page_valid(word: str) -> None:
    model = {"texts": [word.encode("utf-8", "replace").decode()]}
    text = page(model, title=word)
    assert model_of(text) == model
    assert text.count("</script>") == 2


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        pytest.param('I0115 "Received event" event="{\\"data\\":{\\"password\\":\\"x\\"}}"', 'I0115 "Received event" event=… (payload left out)', id="payload"),
        pytest.param("error token: Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.abcdefgh", None, id="token"),
        pytest.param("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", id="terminal"),
        pytest.param("x" * 5000, "x" * 1200 + "…", id="long"),
    ],
)  # fmt: skip
def test_quoted_lines_have_no_secrets(line: str, shown: str | None) -> None:
    found = shown_line(line)
    if shown is not None:
        assert found == shown
    assert "eyJhbGci" not in found


def test_payloads_of_verbose_servers_are_left_out(tmp_path: Path) -> None:
    log = Path(__file__).parents[3] / "data" / "trace_request_go_v4.log"
    assert "manifests" in log.read_text()
    out = tmp_path / "report.html"
    main.call(["trace", "requests", str(log), "--html", str(out)])
    lines = model_of(out.read_text(encoding="utf-8"))["lines"].values()
    assert any("payload left out" in line for line in lines)
    assert not any("manifests\\" in line or '"manifests"' in line for line in lines)
