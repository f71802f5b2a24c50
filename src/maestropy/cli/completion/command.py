"""`maestro completion`: print a shell completion script.

The script asks `maestro __complete` for candidates, so it need not be generated again after an upgrade.
"""

import sys
from typing import Literal

from cyclopts import App

from maestropy.cli.completion import scripts

app = App(
    name="completion",
    help="Print a completion script for bash, zsh or fish.",
    help_epilogue="""\
Examples:

  maestro completion bash > ~/.local/share/bash-completion/completions/maestro
      needs the package bash-completion; without it: `source <(maestro completion bash)` in ~/.bashrc
  maestro completion zsh > ~/.zfunc/_maestro
      with `fpath+=~/.zfunc` before compinit in ~/.zshrc
  maestro completion fish > ~/.config/fish/completions/maestro.fish

It completes commands, flags and their values, files, environments, and the names of consumers and works, which it
reads from the server of --rest-url, MAESTRO_REST_URL or the current environment, within two seconds.""",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def execute(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the script for a shell."""
    sys.stdout.write(scripts.SCRIPTS[shell])
    return 0
