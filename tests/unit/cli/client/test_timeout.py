"""`--timeout` bounds a request with all its attempts."""

import socket
import threading
from pathlib import Path

import pytest

from maestropy.cli import main


def test_a_request_that_is_not_answered_in_time_is_not_begun_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    accepted: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def accept() -> None:
            try:
                while True:
                    accepted.append(silent.accept()[0])
            except OSError:
                return

        thread = threading.Thread(target=accept)
        thread.start()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        code = main.call(["consumer", "list", "--rest-url", url, "--timeout", "200ms"])
        silent.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in accepted:
        connection.close()
    assert code == 1
    assert "no response" in capsys.readouterr().err
    assert len(accepted) == 1
