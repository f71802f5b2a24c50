"""What help says of a field is what stands under it, and finding that out costs no file twice."""

import json
import subprocess
import sys

import pytest
from cyclopts.argument import utils

from maestropy.cli import fielddocs, trace_inputs, trace_pods
from maestropy.cli import trace_request_options as options

CLASSES = [options.Reporting, options.Choice, options.Depth, options.Live, options.Listing, options.Follow,
           trace_inputs.Logs, trace_inputs.Selection, trace_pods.Pods]  # fmt: skip


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__name__)
def test_fields_say_what_the_library_would_find(kind: type) -> None:
    found = fielddocs.told(kind)
    assert found == utils.extract_docstring_help(kind)
    assert found


def test_what_is_none_of_ours_is_left_to_the_library() -> None:
    def command(word: str) -> None:
        """Do.

        Parameters
        ----------
        word
            What to do.
        """

    assert fielddocs.told(command)[("word",)].help == "What to do."
    assert fielddocs.told(int) == utils.extract_docstring_help(int)


_COUNT = """
import ast, contextlib, inspect, io, json, sys
from maestropy.cli import main

parsed, read, parse = [], [], ast.parse
ast.parse = lambda source, *rest, **named: (parsed.append(source), parse(source, *rest, **named))[1]
inspect.getsource = lambda kind: (read.append(str(kind)), "")[1]
with contextlib.redirect_stdout(io.StringIO()) as told:
    code = main.call(sys.argv[1:])
ours = sorted(name for name in sys.modules if name.startswith("maestropy."))
json.dump([code, len(told.getvalue()), len(parsed), len(set(parsed)), read, ours], sys.stdout)
"""


@pytest.mark.parametrize("command", ["request", "requests"])
def test_to_explain_a_trace_no_file_is_read_twice_and_nothing_that_runs_it(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, "trace", command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    code, length, parsed, different, read, ours = json.loads(done.stdout)
    assert (code, length > 2000, parsed, read) == (0, True, different, [])
    assert {each.removeprefix("maestropy.") for each in ours} <= {
        "cli", "cli.failure", "cli.fielddocs", "cli.main", "cli.panels", "cli.root", "cli.trace", "cli.trace_inputs",
        "cli.trace_pods", "cli.trace_request", "cli.trace_request_options", "trace", "trace.errors", "trace.exits",
    }  # fmt: skip
