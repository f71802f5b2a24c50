"""`maestro completion`: a script that teaches a shell our commands and flags.

The script is complete in itself: pressing Tab starts no process. It has to be made anew after an upgrade.
"""

import sys
from typing import Literal

from cyclopts import App

app = App(
    name="completion",
    help="Print a script that completes our commands and flags in your shell.",
    help_epilogue="""\
Examples:

  maestro completion bash > ~/.local/share/bash-completion/completions/maestro
  maestro completion zsh > ~/.zfunc/_maestro
      with `fpath+=~/.zfunc` before compinit in ~/.zshrc
  maestro completion fish > ~/.config/fish/completions/maestro.fish""",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print the script for a shell."""
    # Only this command needs all the others; they know nothing of it.
    from maestropy.cli.root import app as whole

    _leave_out_what_is_not_installed(whole)
    sys.stdout.write(whole.generate_completion(prog_name="maestro", shell=shell))
    return 0


def _leave_out_what_is_not_installed(found: App) -> None:
    """Take away commands whose libraries are not there: a client needs no server."""
    for name in [*found]:
        try:
            below = found[name]
        except ImportError:
            del found[name]
        else:
            _leave_out_what_is_not_installed(below)
