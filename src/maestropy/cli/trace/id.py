"""`maestro trace id`: compute and explain identifiers offline."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from maestropy.cli import screen
from maestropy.cli.trace import endings
from maestropy.trace.errors import InvalidArguments
from maestropy.trace.exit_codes import Exit

app = App(
    name="id",
    help="Compute and explain identifiers offline.",
    help_epilogue="""\
Examples:

  maestro trace id --source mw-client --consumer cluster1 --work-name nginx-work
      the resource ID

  maestro trace id --source S --consumer C --work-name N --broker-host maestro-mqtt-agent.maestro:1883
      also the AppliedManifestWork that an agent of that broker creates

  maestro trace id --sequence 2011725044726730752
      when the agent sent a status""",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def act(  # noqa: PLR0913 - one parameter is one option
    *,
    source: str | None = None,
    consumer: str | None = None,
    work_name: str | None = None,
    resource_id: str | None = None,
    broker_host: str | None = None,
    sequence: str | None = None,
    applied_work: str | None = None,
    output: Annotated[Literal["text", "json"], Parameter(name=("--output", "-o"))] = "text",
) -> int:
    """Compute and explain identifiers.

    Parameters
    ----------
    source
        The source of the work.
    consumer
        The consumer: the work's namespace.
    work_name
        The name that the user gave the work.
    resource_id
        A resource ID: checked against the other three, or used with --broker-host.
    broker_host
        The agents' broker, HOST:PORT as configured; gRPC: the url; Pub/Sub: an empty string.
    sequence
        A sequence ID of a status.
    applied_work
        The name of an AppliedManifestWork, to split.
    output
        The format. [text]
    """
    from maestropy.trace import identifiers

    try:
        card = identifiers.compute(
            identifiers.GivenIdentifiers(
                source=source,
                consumer=consumer,
                work_name=work_name,
                resource_id=resource_id,
                broker_host=broker_host,
                sequence=sequence,
                applied_work=applied_work,
            )
        )
    except InvalidArguments as error:
        return endings.failed(error)
    screen.write(identifiers.as_json(card) if output == "json" else identifiers.as_text(card))
    return int(Exit.PROBLEM if card.contradictions else Exit.HEALTHY)
