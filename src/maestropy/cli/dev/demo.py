"""`maestro demo`: create, update and delete works on a temporary system."""

from cyclopts import App

from maestropy.cli import lifecycle

app = App(
    name="demo",
    help="Run a demo on this computer: create, update, failure and deletion of works; leaves no files behind.",
    help_epilogue="Example:\n\n  maestro demo",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def execute() -> int:
    """Run the demo."""
    from maestropy.sandbox import demo

    async def work(stop: lifecycle.Stop) -> int:
        await lifecycle.run_until(stop, demo.run())
        return 0

    return lifecycle.run(work)
