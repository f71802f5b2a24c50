"""`maestro adapter convert`: write a HyperFleet task as an adapter of the kit."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli import overwriting, screen
from maestropy.cli.errors import UsageError
from maestropy.untrusted import printable

EXAMPLES = """\
Examples:

  maestro adapter convert adapter-task-config.yaml > adapter.py
      write the task as an adapter; adapter-config.yaml beside it gives the name and the clusters

  maestro adapter convert task.yaml --name landing-zone --output adapter.py
  maestro adapter run adapter.py --event event.json --resource cluster.json --dry-run
      convert a task, and show its effects

Exit codes: 0 converted, 1 the task has errors, 2 a mistake in the command line."""

app = App(
    name="convert",
    help="Write a HyperFleet task (schema 2.0) as an adapter.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    task: Annotated[Path, Parameter(help="The task, such as adapter-task-config.yaml.")],
    /,
    *,
    config: Annotated[
        Path | None, Parameter(help="The deployment file. Default: adapter-config.yaml beside the task.")
    ] = None,
    name: Annotated[
        str, Parameter(help="The adapter's name. Default: that of the deployment file.", show_default=False)
    ] = "",
    output: Annotated[Path | None, Parameter(help="The file to write. Default: standard output.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Replace the file of --output.")] = False,
) -> int:
    """Convert a task."""
    from maestropy.adapter.tasks import python_source
    from maestropy.adapter.tasks.load import routing, task_file

    _check_files(task, config, output=output, force=force)
    read = task_file.read(task, deployment_path=config)
    problems = [str(problem) for problem in read.errors]
    if not problems and not task_file.is_task(read.document):
        problems = ["the file holds no HyperFleet task; a task has schema_version, params, resources or post"]
    if not problems and read.document.get("schema_version") != routing.VERSION:
        problems = [f'only tasks of schema version {routing.VERSION} are converted; add schema_version: "2.0"']
    if problems:
        for problem in problems:
            sys.stderr.write(f"{task}: error: {printable.escape(problem)}\n")
        return 1
    chosen = name or str((read.deployment.get("adapter") or {}).get("name") or "")
    if not chosen:
        raise UsageError("the adapter has no name: give --name, or --config with the deployment file")
    text = python_source.source(read.document, name=chosen, origin=task.name, deployment=read.deployment)
    if output is None:
        screen.write(text)
    else:
        output.write_text(text)
    for note in python_source.notes(read.document):
        sys.stderr.write(f"{task}: note: {printable.escape(note)}\n")
    return 0


def _check_files(task: Path, config: Path | None, *, output: Path | None, force: bool) -> None:
    for path in (task, *([config] if config else ())):
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
    problem = overwriting.problem({"--output": output}, _sources(task, config), noun="file of a task")
    if problem:
        raise UsageError(problem)
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} exists; name another file, or give --force to replace it")


def _sources(task: Path, config: Path | None) -> list[Path]:
    """Return the files that a conversion may read: the task, the deployment file, and what lies beside the task."""
    beside = [path for path in task.absolute().parent.iterdir() if path.suffix in (".yaml", ".yml", ".json")]
    return [task, *([config] if config else ()), *beside]
