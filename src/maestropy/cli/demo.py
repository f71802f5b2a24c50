"""`maestro demo`: the main job from end to end, on a database that is thrown away."""

from cyclopts import App

from maestropy.cli import running

app = App(
    name="demo",
    help="Show the main job from end to end on this computer, in under a minute; leaves nothing behind.",
    help_epilogue="Example:\n\n  maestro demo",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act() -> int:
    """Run the demonstration."""
    from maestropy.sandbox import demo

    async def work(stop: running.Stop) -> int:
        await running.until(stop, demo.run())
        return 0

    return running.run(work)
