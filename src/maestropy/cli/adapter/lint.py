"""`maestro adapter lint`: what is wrong with an adapter, before a fleet finds out."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.errors import UsageError
from maestropy.untrusted import printable

EXAMPLES = """\
Examples:

  maestro adapter lint my-adapter
      check the adapter in the folder, with its samples, and the YAML files beside it

  maestro adapter lint my-adapter/adapter.py
      check one file, with the resources in my-adapter/samples

  maestro adapter lint adapter.py --sample cluster.json
      check its desired state for a real cluster

  maestro adapter lint work.yaml adapter-task-config.yaml adapter-config.yaml
      check a work, a HyperFleet task (schema 2.0) and its deployment file

Exit codes: 0 no errors, 1 errors, 2 a mistake in the command line, such as a file that does not exist."""

app = App(
    name="lint",
    help="Check adapters, works and tasks; contact no server.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    paths: Annotated[list[str], Parameter(help="Files, folders, or module:name.")],
    /,
    *,
    sample: Annotated[
        list[Path] | None,
        Parameter(help="A resource as the API shows it, as JSON or YAML. Default: samples/*.json beside the adapter."),
    ] = None,
    strict: Annotated[bool, Parameter(negative="", help="Treat warnings as errors.")] = False,
) -> int:
    """Check."""
    findings = [finding for path in paths for finding in _findings(path, sample or [])]
    for line in findings:
        screen.write(f"{printable.escape(str(line))}\n")
    errors = [finding for finding in findings if strict or finding.level == "error"]
    if not findings:
        screen.write("no findings\n")
    return 1 if errors else 0


def _findings(reference: str, samples: list[Path]) -> list[Any]:
    from maestropy.adapter.tooling import lint, loading
    from maestropy.sdk._manifests import sources

    path = Path(reference)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
        return list(lint.document_findings(path))
    beside: list[Path] = []
    if path.is_dir():
        beside = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
    samples = samples or _samples_beside(path)
    # The samples folder also holds events.
    read = [document for sample in samples for document in sources.read(sample) if "specversion" not in document]
    findings = lint.adapter_findings(loading.load(reference), samples=read)
    return [*findings, *(finding for document in beside for finding in lint.document_findings(document))]


def _samples_beside(path: Path) -> list[Path]:
    """Return the samples of an adapter: of its folder, or of the folder of its file (`file.py` or `file.py:name`)."""
    file = Path(str(path).partition(":")[0])
    folder = path if path.is_dir() else file.parent if file.suffix == ".py" else None
    return sorted(folder.glob("samples/*.json")) if folder else []
