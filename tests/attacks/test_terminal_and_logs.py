"""Attacks with text: what others write into names, statuses and errors reaches terminals and logs only as text."""

import io
import json
import socketserver
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import yaml

from maestropy.cli import main
from maestropy.journal import emit
from maestropy.journal.redact import HIDDEN
from maestropy.store.dsn import Dsn

CLEAR = "\x1b[2J\x1b[H"
TITLE = "\x9d0;owned\x9c"
"""Sets the title of the window, with C1 controls, which are single characters."""
REVERSED = "safe\u202egpj.exe"
"""A bidirectional override: the screen shows other letters than the text has."""
FORGED = 'I0115 09:00:00.000000       1 resource.go:1] "all is well"'
HOSTILE = f"n{CLEAR}{TITLE}{REVERSED}\r\n{FORGED}"
SECRET = "hunter2-of-the-secret"


def logged(fields: dict[str, object], *, log_format: emit.LogFormat = "text", verbosity: int = 10) -> str:
    sink = io.BytesIO()
    journal = emit.Journal(sink, clock=lambda: 1768467600.0, verbosity=verbosity, format=log_format)
    journal.error("failed", fields, err=ValueError(str(fields.get("err", ""))))
    journal.flush()
    return sink.getvalue().decode()


def controls(text: str) -> set[str]:
    """Return the characters that must not reach a terminal."""
    return {char for char in text if not char.isprintable() and char not in "\n\t"}


@pytest.mark.parametrize("log_format", ["text", "json"])
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(HOSTILE, id="name"),
        pytest.param({"op-id": HOSTILE, HOSTILE: 1}, id="extensions"),
        pytest.param([HOSTILE], id="list"),
        pytest.param(ValueError(HOSTILE), id="error"),
        pytest.param(HOSTILE.encode(), id="bytes"),
        pytest.param(f"line\n\t{FORGED}", id="indented-record"),
    ],
)
def test_log_value(log_format: emit.LogFormat, value: object) -> None:
    """A name, operation ID or error with escape sequences and a forged log line -> one line, all of it escaped"""
    text = logged({"value": value, "err": HOSTILE}, log_format=log_format)
    assert controls(text) == set()
    assert text.count("\n") == 1
    assert "all is well" in text


def test_ordinary_multi_line_text_keeps_the_form_of_klog() -> None:
    """Text of several lines without control characters -> klog's multi-line form, indented, as Go writes it"""
    assert " value=<\n\tfirst\n\t\tsecond\n >" in logged({"value": "first\n\tsecond\n"})


CONSUMER_ID = "00000000-0000-0000-0000-000000000001"
BUNDLE_ID = "00000000-0000-0000-0000-000000000002"
CONSUMER = {"id": CONSUMER_ID, "kind": "Consumer", "name": HOSTILE, "labels": {HOSTILE: HOSTILE}, "created_at": HOSTILE}
BUNDLE = {
    "id": BUNDLE_ID,
    "kind": "ResourceBundle",
    "consumer_name": HOSTILE,
    "version": 1,
    "metadata": {"name": HOSTILE, "labels": {"a": HOSTILE}},
    "manifests": [{"apiVersion": "v1", "kind": HOSTILE, "metadata": {"name": HOSTILE}}],
    "status": {
        "conditions": [{"type": HOSTILE, "status": "True", "reason": HOSTILE, "message": HOSTILE}],
        "resourceStatus": [
            {
                "resourceMeta": {"kind": HOSTILE, "name": HOSTILE},
                "conditions": [{"type": "Applied", "status": "False", "reason": "x", "message": HOSTILE}],
                "statusFeedback": {"values": [{"name": HOSTILE, "fieldValue": {"type": "String", "string": HOSTILE}}]},
            }
        ],
    },
}


class _HostileApi(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        item = CONSUMER if "/consumers" in self.path else BUNDLE
        is_list = self.path.split("?")[0].endswith(("consumers", "resource-bundles"))
        a_list = {"kind": f"{item['kind']}List", "page": 1, "size": 1, "total": 1, "items": [item]}
        answer: Any = a_list if is_list else item
        if "data-safety" in self.path or "delivery-pauses" in self.path:
            answer = {"type": "Error", "code": "maestro-404", "reason": "The requested resource 'x' doesn't exist"}
        if "missing" in self.path:
            answer = {"kind": "Error", "code": "maestro-7", "reason": HOSTILE}
        self.send_response(404 if "code" in answer else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Write no log."""


@pytest.fixture
def hostile_api(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with HTTPServer(("127.0.0.1", 0), _HostileApi) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("MAESTRO_REST_URL", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("consumer list", id="consumer-list"),
        pytest.param(f"consumer get {CONSUMER_ID}", id="consumer-get"),
        pytest.param("consumer get missing", id="error-text"),
        pytest.param("resourcebundle list -o wide", id="bundle-list"),
        pytest.param(f"resourcebundle get {BUNDLE_ID}", id="bundle-get"),
        pytest.param(f"resourcebundle status {BUNDLE_ID}", id="bundle-status"),
        pytest.param(f"resourcebundle describe {BUNDLE_ID}", id="bundle-describe"),
        *(pytest.param(f"resourcebundle list -o {form}", id=f"bundle-{form}") for form in ("json", "yaml", "name")),
        *(
            pytest.param(f"consumer get {CONSUMER_ID} -o {form}", id=f"consumer-{form}")
            for form in ("json", "yaml", "name")
        ),
    ],
)
@pytest.mark.usefixtures("hostile_api")
def test_command_output(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Names, labels, conditions and errors of a server with escape sequences -> escaped in tables, JSON and YAML"""
    main.call(command.split())
    shown = capsys.readouterr()
    assert shown.out or shown.err
    assert controls(shown.out + shown.err) == set()
    assert not any(line.lstrip().startswith(FORGED) for line in (shown.out + shown.err).splitlines())


@pytest.mark.usefixtures("hostile_api")
def test_escaped_json_and_yaml_mean_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    """JSON and YAML with escaped characters -> the very text of the server, for programs"""
    assert main.call(f"consumer get {CONSUMER_ID} -o json".split()) == 0
    assert json.loads(capsys.readouterr().out)["name"] == HOSTILE
    assert main.call(f"consumer get {CONSUMER_ID} -o yaml".split()) == 0
    assert yaml.safe_load(capsys.readouterr().out)["name"] == HOSTILE


def event(data: dict[str, Any]) -> dict[str, object]:
    """Return the log field of a whole event, as at -v=10."""
    return {"event": json.dumps({"specversion": "1.0", "id": "1", "data": data})}


SECRET_STATUS = {
    "conditions": [{"type": "Ready", "status": "True", "reason": "ConditionRulesAggregated", "message": SECRET}],
    "resourceStatus": [
        {
            "resourceMeta": {"kind": "Secret", "resource": "secrets", "name": "db"},
            "statusFeedback": {"values": [{"name": "p", "fieldValue": {"type": "String", "string": SECRET}}]},
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "ConditionRuleEvaluated", "message": f"it is {SECRET}"}
            ],
        }
    ],
}


def deployment(value: str) -> dict[str, Any]:
    container = {"name": "web", "env": [{"name": "DB_ADDRESS", "value": value}, {"name": "EMPTY", "value": ""}]}
    return {"manifests": [{"kind": "Deployment", "spec": {"template": {"spec": {"containers": [container]}}}}]}


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(event(deployment(SECRET)), id="environment-variable"),
        pytest.param({"manifest": deployment(SECRET)}, id="environment-variable-in-a-field"),
        pytest.param(event({"x": json.dumps(deployment(SECRET))}), id="environment-variable-in-json-in-json"),
        pytest.param(event({"manifests": [{"kind": "Secret", "stringData": {"p": SECRET}}]}), id="secret"),
        pytest.param(event(SECRET_STATUS), id="feedback-and-messages-of-a-secret"),
        pytest.param(
            event({"status": {**SECRET_STATUS, "resourceStatus": {"manifests": SECRET_STATUS["resourceStatus"]}}}),
            id="status-of-a-manifest-work",
        ),
    ],
)
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_secret_values_in_the_log(fields: dict[str, object], log_format: emit.LogFormat) -> None:
    """Reading logs at -v=10 for environment variables and values of Secrets -> the names, with masked values"""
    text = logged(fields, log_format=log_format)
    assert SECRET not in text
    assert HIDDEN in text


PASSWORD = "hunter2-of-the-database"


class _RejectingPostgres(socketserver.BaseRequestHandler):
    """Speaks PostgreSQL's protocol as far as a wrong password."""

    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"R" + struct.pack(">II", 8, 3))
        self.request.recv(4096)
        fields = b'SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user "maestro"\0\0'
        self.request.sendall(b"E" + struct.pack(">I", len(fields) + 4) + fields)


@pytest.fixture
def rejecting_postgres() -> Iterator[int]:
    with socketserver.TCPServer(("127.0.0.1", 0), _RejectingPostgres) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def start_error(dsn: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main.call(["server", "--server-hostname=127.0.0.1", f"--db-dsn={dsn}"]) == 1
    shown = capsys.readouterr().err
    assert PASSWORD not in shown
    return shown


def test_start_with_a_wrong_password(rejecting_postgres: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Reading start errors for the password of the database -> address, user and database name, no password"""
    dsn = f"postgresql://maestro:{PASSWORD}@127.0.0.1:{rejecting_postgres}/fleet?sslmode=disable"
    shown = start_error(dsn, capsys)
    assert f"postgresql://maestro@127.0.0.1:{rejecting_postgres}/fleet" in shown
    assert "password authentication failed" in shown


def test_start_without_a_database(capsys: pytest.CaptureFixture[str]) -> None:
    """A database that cannot be reached -> the error has its address, no password"""
    shown = start_error(f"postgresql://maestro:{PASSWORD}@127.0.0.1:1/fleet", capsys)
    assert "the database postgresql://maestro@127.0.0.1:1/fleet" in shown
    assert "Connect call failed" in shown or "Connection refused" in shown


def test_start_without_migrations(database: Dsn, capsys: pytest.CaptureFixture[str]) -> None:
    """A database without tables -> the error has its name and the command that migrates it"""
    empty = replace(database, database="template1")
    shown = start_error(str(empty), capsys)
    assert f"the database {empty} lacks" in shown
    assert "maestro migration" in shown
