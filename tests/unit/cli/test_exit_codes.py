"""Which errors of other packages are mistakes in the command line, and how a full standard output ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from maestropy.adapter.errors import BadAdapter
from maestropy.adapter.tooling import loading
from maestropy.cli import errors
from maestropy.sdk import selector


def test_malformed_selector_is_a_usage_error() -> None:
    with pytest.raises(selector.InvalidSelector) as raised:
        selector.parse("a b")
    assert errors.exit_code(raised.value) == errors.USAGE


def test_missing_adapter_is_a_usage_error_and_a_broken_one_is_not() -> None:
    with pytest.raises(BadAdapter) as raised:
        loading.load("nowhere/adapter.py")
    assert errors.exit_code(raised.value) == errors.USAGE
    assert errors.exit_code(BadAdapter("cannot be imported")) == errors.FAILED


def test_chain_of_causes_may_be_a_circle() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert not errors.was_interrupted(first)


_LONG_OUTPUT = """
import sys
from maestropy.cli import main, screen
main._run = lambda arguments: screen.write("line\\n" * 200_000) or 0
main.main()
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_its_reader_closes_ends_the_command_with_141(unbuffered: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _LONG_OUTPUT],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"line\n"
        command.stdout.close()
        assert (command.wait(timeout=30), command.stderr.read()) == (errors.OUTPUT_CLOSED, b"")


@pytest.mark.parametrize(("command", "unbuffered"), [("version", ""), ("version", "1"), ("help consumer list", "")])
def test_a_full_standard_output_is_named(command: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "maestropy", *command.split()],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == (
        "Error: standard output cannot be written: No space left on device; the output is lost, or incomplete\n"
    )
    assert done.returncode == errors.FAILED
