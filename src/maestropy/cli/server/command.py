"""`maestro server`: load the settings and run the server, in one process or in several workers."""

import os
from collections.abc import Mapping

from maestropy.cli import lifecycle
from maestropy.cli.parsing.settings_commands import SettingsCommand
from maestropy.server import settings as configuration
from maestropy.server.settings.console_login import read_secret
from maestropy.server.settings.load import FLAGS

EXAMPLES = """\
Examples:

  maestro server
      on loopback, with the embedded PostgreSQL

  MAESTRO_DB_DSN=postgresql://maestro@db/maestro maestro server
      the same with an existing PostgreSQL

  maestro server --data-dir=/var/lib/maestro
      with another data directory

  maestro server --server-hostname= --embedded-database --insecure-rest --insecure-grpc --insecure-grpc-broker
      for every client of a trusted network; without these flags it does not start

  maestro server --message-broker-type=pubsub --message-broker-config-file=pubsub.yaml
      agents behind Google Pub/Sub; PUBSUB_EMULATOR_HOST=localhost:8085 for an emulator

  maestro server --workers=4 -v=4
      four worker processes on the same ports, and every event in the log

  maestro server status
      whether the server on this host is ready, and which dependency is the reason if not"""


_AUTHENTICATION = "authentication of REST clients: --rest-authn-type"
REMOVED = {
    **dict.fromkeys(("--enable-jwt", "--jwk-cert-file", "--jwk-cert-url"), _AUTHENTICATION),
    **dict.fromkeys(("--enable-authz", "--acl-file"), "roles of REST clients: --jwt-role-claim"),
    **dict.fromkeys(("--enable-sentry", "--enable-sentry-debug", "--sentry-key-file", "--sentry-project"), ""),
    **dict.fromkeys(("--sentry-timeout", "--sentry-url"), ""),
    **dict.fromkeys(("--enable-ocm-mock", "--ocm-base-url", "--ocm-client-id-file", "--ocm-client-secret-file"), ""),
    **dict.fromkeys(("--ocm-debug", "--ocm-token-url", "--self-token-file"), ""),
}
"""Flags of features that Go Maestro no longer has. Its charts of earlier versions still set them."""


def execute(values: Mapping[str, str]) -> int:
    """Run the server with the settings of the flags."""
    from maestropy.cli.server import run as serving

    settings, dsn = configuration.locate(configuration.load(values, os.environ))
    configuration.check_broker_file(settings)
    configuration.check_hostname(settings)
    if settings.console_login.client_secret_file is not None:
        read_secret(settings.console_login.client_secret_file)
    if settings.http.cert_file or settings.grpc.tls_cert_file or settings.broker.tls_cert_file:
        # Imported here: the libraries for certificates are large, and the process that starts workers needs no others.
        from maestropy.server.settings.listener_tls import check_files

        check_files(settings)
    return lifecycle.run(lambda stop: serving.serve(settings, dsn, flags=values, stop=stop))


COMMAND = SettingsCommand(
    name="server",
    flags=FLAGS,
    execute=execute,
    text="Run the Maestro server: REST, gRPC for sources, gRPC for agents, metrics and health.",
    examples=EXAMPLES,
    removed=REMOVED,
)
