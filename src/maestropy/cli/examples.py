"""Write the end of a help page: what to type, and which exit codes to expect."""

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 a mistake in the command line, 130 interrupted."

GLOBAL_FLAGS = (
    "Global flags, as in Go Maestro: -v LEVEL; from 4 on an error is shown with its causes. The other flags of klog,\n"
    "such as --logtostderr, and --kubeconfig are accepted without effect."
)


_GO_CLIENTS = ("maestro consumer ", "maestro resourcebundle ", "maestro get ", "maestro history ")


def epilogue(*commands: str, exit_codes: str = EXIT_CODES) -> str:
    """Return the examples of a command, one a line, its exit codes, and the global flags of client commands."""
    heading = "Examples:" if len(commands) > 1 else "Example:"
    has_global_flags = any(client in commands[0] for client in _GO_CLIENTS)
    global_flags = [GLOBAL_FLAGS, ""] if has_global_flags else []
    return "\n".join([heading, "", *(f"  {command}" for command in commands), "", *global_flags, exit_codes])
