"""Start the command `maestro`.

Until the command line is ready, Ctrl-C ends the process at once and without a traceback, as it ends other programs.
`main` handles Ctrl-C from then on. So this module imports nothing before that but what the interpreter has built in.
"""

import _signal  # type: ignore[import-not-found]  # built in, without a stub; `signal` would import more

# A process that was started with Ctrl-C ignored, such as one with nohup, stays so.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def main() -> None:
    """Run the command line of this process."""
    from maestropy.cli import main as command_line

    command_line.main()


if __name__ == "__main__":
    main()
