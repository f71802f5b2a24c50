"""`maestro adapter consume` while its broker is away."""

import os
import subprocess
import sys
from pathlib import Path

from tests.unit.cli.test_adapter_run import ADAPTER

AWAY = {
    "BROKER_TYPE": "rabbitmq",
    "BROKER_RABBITMQ_URL": "amqp://127.0.0.1:1/",
    "MAESTRO_API_URL": "http://127.0.0.1:1",
    "MAESTRO_GRPC_URL": "127.0.0.1:1",
}


def test_rabbitmq_that_is_away_at_the_start_ends_the_command(tmp_path: Path) -> None:
    (tmp_path / "adapter.py").write_text(ADAPTER)
    words = ["--topic", "t", "--subscription", "s", "--health-port", "0", "--metrics-port", "0"]
    command = [sys.executable, "-m", "maestropy", "adapter", "consume", f"{tmp_path}/adapter.py", *words]
    ended = subprocess.run(command, env={**os.environ, **AWAY}, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1, ended.stderr
    message = ended.stderr.splitlines()[-1]
    assert message.startswith("Error: cannot receive from RabbitMQ queue t-s: ")
    assert message.endswith("; check rabbitmq.url and the broker")
