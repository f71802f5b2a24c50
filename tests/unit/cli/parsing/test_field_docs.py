"""The help of a field is the docstring under it; each file is parsed once."""

import json
import subprocess
import sys

import pytest
from cyclopts.argument import utils

from maestropy.cli.parsing import field_docs
from maestropy.cli.trace.logs import inputs, pods
from maestropy.cli.trace.logs import request_options as options

CLASSES = [
    options.ReportingOptions,
    options.RequestChoice,
    options.DepthSelection,
    options.LiveOptions,
    options.ListOptions,
    options.FollowOptions,
    inputs.Logs,
    inputs.Selection,
    pods.Pods,
]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_field_help_is_that_of_cyclopts(kind: type) -> None:
    texts = field_docs.field_help(kind)
    assert texts == utils.extract_docstring_help(kind)
    assert texts


def test_other_objects_are_left_to_cyclopts() -> None:
    def command(word: str) -> None:
        """Do.

        Parameters
        ----------
        word
            What to do.
        """

    assert field_docs.field_help(command)[("word",)].help == "What to do."
    assert field_docs.field_help(int) == utils.extract_docstring_help(int)


_COUNT = """
import ast, contextlib, inspect, io, json, sys
from maestropy.cli import main

parsed, read, parse = [], [], ast.parse
ast.parse = lambda source, *rest, **named: (parsed.append(source), parse(source, *rest, **named))[1]
inspect.getsource = lambda kind: (read.append(str(kind)), "")[1]
with contextlib.redirect_stdout(io.StringIO()) as page:
    code = main.call(sys.argv[1:])
ours = sorted(name for name in sys.modules if name.startswith("maestropy."))
json.dump([code, len(page.getvalue()), len(parsed), len(set(parsed)), read, ours], sys.stdout)
"""


@pytest.mark.parametrize("command", ["request", "requests"])
def test_help_of_trace_parses_each_file_once_and_imports_little(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, "trace", command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    code, length, parsed, different, read, ours = json.loads(done.stdout)
    assert (code, length > 2000, parsed, read) == (0, True, different, [])
    assert {name.removeprefix("maestropy.") for name in ours} <= {
        "_version", "installation", "cli", "cli.command_tree", "cli.errors", "cli.main", "cli.parsing", "cli.screen",
        "cli.parsing.aliases", "cli.parsing.field_docs", "cli.parsing.help_panels", "cli.trace", "cli.trace.endings",
        "cli.trace.group", "cli.trace.logs",
        "cli.trace.logs.inputs", "cli.trace.logs.pods", "cli.trace.logs.request", "cli.trace.logs.request_options",
        "trace", "trace.errors", "trace.exit_codes", "trace.hcp", "trace.work", "untrusted", "untrusted.printable",
    }  # fmt: skip
