"""The command lines of ARO HCP's charts for the Maestro server, its migration and the agent, as data: flags only.

They are those of maestro/server/deploy and maestro/agent/deploy in August 2026. `{...}` are values of the chart, and
`/secrets` is where it mounts the secrets.
"""

from collections.abc import Mapping
from pathlib import Path

DATABASE = (
    "--db-host-file=/secrets/db/db.host",
    "--db-port-file=/secrets/db/db.port",
    "--db-user-file=/secrets/db/db.user",
    "--db-password-file=/secrets/db/db.password",
    "--db-name-file=/secrets/db/db.name",
    "--db-rootcert=",
    "--db-sslmode=require",
)
MIGRATION = ("migration", *DATABASE, "--alsologtostderr", "-v=2", "--db-auth-method=az-entra")
SERVER = (
    "server",
    "--client-id=maestro-{pod}",
    "--subscription-type=broadcast",
    *DATABASE,
    "--db-max-open-connections=50",
    "--message-broker-config-file=/secrets/maestro/config.yaml",
    "--message-broker-type=mqtt",
    "--enable-https=false",
    "--enable-grpc-server=true",
    "--disable-grpc-tls=true",
    "--server-hostname={hostname}",
    "--http-server-bindport={http}",
    "--grpc-server-bindport={grpc}",
    "--health-check-server-bindport={health}",
    "--enable-health-check-https=false",
    "--enable-db-debug=false",
    "--enable-metrics-https=false",
    "--http-read-timeout=60s",
    "--http-write-timeout=60s",
    "--label-metrics-inclusion-duration=168h",
    "--alsologtostderr",
    "-v=2",
    "--db-auth-method=az-entra",
)
AGENT = (
    "agent",
    "--consumer-name={consumer}",
    "--workload-source-driver=mqtt",
    "--workload-source-config=/secrets/maestro/config.yaml",
    "--cloudevents-client-id={consumer}-work-agent",
    "--disable-leader-election=true",
    "--appliedmanifestwork-eviction-grace-period=876000h",
    "-v=2",
)
SERVER_ENVIRONMENT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "", "OTEL_TRACES_EXPORTER": "", "AMS_ENV": "production"}


def rendered(command: tuple[str, ...], *, secrets: Path, values: Mapping[str, object]) -> list[str]:
    """Return a command line with the values of the chart and another place of the secrets."""
    return [argument.format(**values).replace("/secrets/", f"{secrets}/") for argument in command]
