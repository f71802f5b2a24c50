"""Attacks on the command line by a server that is not Maestro: nothing that it says counts as success."""

import io
import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
import yaml

from maestropy.cli import main, screen

ID = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb"
OTHER = "00000000-0000-0000-0000-000000000077"
NOT_MAESTRO = "check that the address leads to Maestro's REST API"


def bundle(bundle_id: str, name: str = "w") -> dict[str, Any]:
    return {
        "id": bundle_id,
        "kind": "ResourceBundle",
        "consumer_name": "c1",
        "version": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "metadata": {"name": name},
        "manifests": [],
    }


def listed(*items: dict[str, Any], kind: str = "ResourceBundleList") -> bytes:
    return json.dumps({"kind": kind, "page": 1, "size": len(items), "total": len(items), "items": items}).encode()


@dataclass(slots=True)
class Says:
    """What the server answers to everything."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Iterator[Says]:
    answer = Says()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST = do_PATCH = do_DELETE = _answer

        def log_message(self, *_: object) -> None:
            pass

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        monkeypatch.setenv("MAESTRO_REST_URL", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("MAESTRO_GRPC_SERVER_ADDRESS", "127.0.0.1:1")
        yield answer
        server.shutdown()
        thread.join(10)


def fails(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must fail with one sentence, and return it."""
    code = main.call(line.split())
    shown = capsys.readouterr()
    assert (code, shown.out) == (1, "")
    assert "Traceback" not in shown.err
    assert "unexpected" not in shown.err
    return shown.err


@pytest.mark.parametrize(
    "line",
    [
        f"rb wait {ID} --for=delete",
        "rb wait c1/w --for=delete",
        f"rb delete {ID} --yes --ignore-not-found",
        f"rb get {ID}",
        f"consumer delete {ID} --yes",
        "consumer delete zz --yes",
        "consumer create zz",
        "consumer list",
    ],
)
def test_not_found_of_a_proxy(line: str, says: Says, capsys: pytest.CaptureFixture[str]) -> None:
    """A proxy answers everything with 404 and HTML -> no object is gone, the address is wrong"""
    says.status, says.body, says.content_type = 404, b"<html>404 nginx</html>", "text/html"
    message = fails(line, capsys)
    assert NOT_MAESTRO in message
    assert "not found" not in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"rb wait {ID} --for=delete", "the response is not a resource bundle"),
        (f"rb delete {ID} --yes", "the response is not a resource bundle"),
        ("consumer create zz", "the response is not a consumer: its kind is missing"),
        ("rb list", "the response is not a resource bundle list"),
        ("rb delete -l a=b --yes", "the response is not a resource bundle list"),
    ],
)
def test_json_of_another_service(line: str, message: str, says: Says, capsys: pytest.CaptureFixture[str]) -> None:
    """Another service answers everything with 200 and JSON of its own -> it is not taken for Maestro's objects"""
    says.body = b'{"hello": "world"}'
    assert message in fails(line, capsys)


@pytest.mark.parametrize("line", [f"rb get {ID} -o name", f"rb delete {ID} --yes", f"rb wait {ID}"])
def test_another_resource_bundle(line: str, says: Says, capsys: pytest.CaptureFixture[str]) -> None:
    """The server sends another resource bundle than the one that was asked for -> it is neither shown nor deleted"""
    says.body = json.dumps(bundle(OTHER)).encode()
    assert f"the response is another resource bundle: {OTHER}" in fails(line, capsys)


def test_another_name(says: Says, capsys: pytest.CaptureFixture[str]) -> None:
    """The server ignores the search and sends an object of another name -> it is not deleted"""
    says.body = listed(bundle(OTHER, "precious"))
    assert "asked for c1/w and sent c1/precious" in fails("rb delete c1/w --yes", capsys)
    says.body = listed({"id": OTHER, "kind": "Consumer", "name": "precious"}, kind="ConsumerList")
    assert "the server sent the consumer 'precious'" in fails("consumer delete zz --yes", capsys)


@pytest.mark.parametrize("line", ["rb list", "rb list --all", "rb delete -l a=b --yes", "rb wait c1/w --for=delete"])
@pytest.mark.parametrize(
    "body",
    [
        {"total": 10**9, "items": [], "continue": "again"},
        {"total": 3, "items": None},
        {"total": 3, "items": []},
    ],
)
def test_list_without_its_objects(
    line: str, body: dict[str, Any], says: Says, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list has a total, and no objects -> it is not shown as empty"""
    says.body = json.dumps({"kind": "ResourceBundleList", "page": 1, "size": 0, **body}).encode()
    assert "the list is not complete" in fails(line, capsys)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_text_beyond_ascii_on_an_ascii_terminal(form: str, says: Says, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that has only ASCII, and a name with é -> escaped, so that JSON and YAML mean the same"""
    says.body = listed(bundle(ID, "café"))
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors=screen.ESCAPED))
    assert main.call(["rb", "list", "-o", form]) == 0
    sys.stdout.flush()
    text = written.getvalue().decode("ascii")
    assert yaml.safe_load(text)["items"][0]["metadata"]["name"] == "café"
    assert "?" not in text
