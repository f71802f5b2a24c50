"""`maestro adapter lint`: what is wrong with an adapter, before a fleet finds out."""

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

EXAMPLES = """\
Examples:

  maestro adapter lint my-adapter
      the adapter in the folder, with its samples, and the YAML files beside it

  maestro adapter lint adapter.py --sample cluster.json
      ask it what it wants for a real cluster

  maestro adapter lint work.yaml task.yaml
      a work, or a task of the HyperFleet adapter framework

Exit codes: 0 nothing is wrong, 1 something is."""

app = App(
    name="lint",
    help="Check adapters, works and tasks; nothing is contacted.",
    help_epilogue=EXAMPLES,
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    what: Annotated[list[str], Parameter(help="Files, folders, or module:name.")],
    /,
    *,
    sample: Annotated[list[Path] | None, Parameter(help="A resource as the API shows it, as JSON or YAML.")] = None,
    strict: Annotated[bool, Parameter(negative="", help="Warnings count as errors.")] = False,
) -> int:
    """Check."""
    found = [finding for each in what for finding in _findings(each, sample or [])]
    for each in found:
        sys.stdout.write(f"{each}\n")
    wrong = [each for each in found if strict or each.level == "error"]
    if not found:
        sys.stdout.write("nothing is wrong\n")
    return 1 if wrong else 0


def _findings(what: str, samples: list[Path]) -> list[Any]:
    from maestropy.adapter import lint, loading
    from maestropy.sdk import manifests

    path = Path(what)
    if path.suffix in (".yaml", ".yml"):
        return list(lint.document_findings(path))
    beside: list[Path] = []
    if path.is_dir():
        samples = samples or sorted(path.glob("samples/*.json"))
        beside = sorted([*path.glob("*.yaml"), *path.glob("*.yml")])
    # Samples of events lie beside those of resources.
    read = [document for each in samples for document in manifests.read(each) if "specversion" not in document]
    found = lint.adapter_findings(loading.load(what), samples=read)
    return [*found, *(finding for each in beside for finding in lint.document_findings(each))]
