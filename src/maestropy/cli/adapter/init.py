"""`maestro adapter init`: write a new adapter that runs and passes its own tests."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from maestropy.cli.errors import UsageError

app = App(
    name="init",
    help="Write a new adapter that runs and passes its own tests.",
    help_epilogue="Example:\n\n  maestro adapter init my-adapter && cd my-adapter && pytest",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(
    folder: Annotated[Path, Parameter(help="A new folder, or an empty one.")],
    /,
    *,
    name: Annotated[str, Parameter(help="The adapter's name. Default: the folder's.", show_default=False)] = "",
) -> int:
    """Write the files."""
    from maestropy.adapter.errors import BadAdapter
    from maestropy.adapter.tooling import scaffold

    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; name another folder")
    try:
        files = scaffold.files(name or folder.absolute().name)
    except BadAdapter as error:
        raise UsageError(f"{error}; name another folder, or give --name") from error
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        sys.stdout.write(f"{target}\n")
    sys.stdout.write(f"Now: cd {folder} && maestro adapter lint . && pytest\n")
    return 0
