"""Find the listeners that serve unauthenticated clients of other hosts.

Pure. `check` rejects settings with such a listener, unless the command line accepts it: with a flag of ours
(`--insecure-rest`, `--insecure-grpc`, `--insecure-grpc-broker`), or with a flag by which the charts of Go Maestro say
whether REST uses TLS, since there is no other in Go Maestro. `main` logs a warning for every accepted listener.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from maestropy.server.settings.model import ServerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenListener:
    """A listener that other hosts can reach, and what its clients may do without authentication."""

    name: str
    problem: str
    remedy: str
    accepted_by: str
    """The flag that accepts this listener."""

    is_accepted: bool


def open_listeners(settings: ServerSettings) -> list[OpenListener]:
    """Return the open listeners of `settings`; none if only this host can reach the server."""
    if settings.is_loopback_only:
        return []
    return [*_rest(settings), *_sources(settings), *_agents(settings)]


def problem(settings: ServerSettings) -> str:
    """Return why the server must not start: every listener that nobody accepted. Empty if there is none."""
    listeners = [listener for listener in open_listeners(settings) if not listener.is_accepted]
    if not listeners:
        return ""
    details = "; ".join(
        f"{listener.name}: {listener.problem}; {listener.remedy}, or accept it with {listener.accepted_by}"
        for listener in listeners
    )
    return (
        f"other hosts could use these listeners without authentication. {details}. Or use --server-hostname=localhost"
    )


def _rest(settings: ServerSettings) -> Iterator[OpenListener]:
    rest = settings.rest_auth
    if rest.authn_type == "none":
        yield OpenListener(
            name=f"REST on port {settings.http.port}",
            problem="REST clients are not authenticated",
            remedy="set --rest-authn-type=jwt",
            accepted_by="--insecure-rest",
            is_accepted=rest.insecure or settings.http.https_is_given,
        )


def _sources(settings: ServerSettings) -> Iterator[OpenListener]:
    grpc = settings.grpc
    if not grpc.enabled or (grpc.tls_cert_file is not None and grpc.authn_type != "mock"):
        return
    yield OpenListener(
        name=f"gRPC for sources on port {grpc.port}",
        problem="sources are not authenticated",
        remedy="set --grpc-tls-cert-file and --grpc-authn-type",
        accepted_by="--insecure-grpc",
        is_accepted=(grpc.insecure or grpc.disable_tls or grpc.authn_type_is_given or settings.http.https_is_given),
    )


def _agents(settings: ServerSettings) -> Iterator[OpenListener]:
    broker = settings.broker
    if not settings.serves_agents or (broker.client_ca_file and broker.agent_identity in ("exact", "suffix")):
        return
    name = f"gRPC for agents on port {broker.port}"
    if broker.client_ca_file is not None:
        yield OpenListener(
            name=name,
            problem="every agent may act for every consumer",
            remedy="name consumers in the certificates of agents and set --grpc-broker-agent-identity=exact",
            accepted_by="--grpc-broker-agent-identity=any",
            is_accepted=True,
        )
        return
    yield OpenListener(
        name=name,
        problem="agents are not authenticated",
        remedy="set --grpc-broker-tls-cert-file and --grpc-broker-client-ca-file",
        accepted_by="--insecure-grpc-broker",
        is_accepted=broker.insecure or settings.grpc.disable_tls or settings.http.https_is_given,
    )
