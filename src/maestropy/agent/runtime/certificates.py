"""List the certificates that an agent uses: for its port, to the server or the broker, and to the API server."""

from pathlib import Path

from maestropy.agent.runtime import health
from maestropy.agent.settings import AgentSettings
from maestropy.kube.config.address import ClusterAddress
from maestropy.transport.grpc import config as grpc_config
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.tls import expiry

_FLAG = "--workload-source-config"


def watched(
    settings: AgentSettings, address: ClusterAddress, *, serving: Path = health.SERVING_CERTIFICATE
) -> list[expiry.WatchedCertificate]:
    """Return the certificates of the agent's settings; reads the configuration file of the connection."""
    found = []
    if settings.process.listen is not None and (serving / "tls.crt").exists():
        found.append(expiry.WatchedCertificate(name="serving", file=serving / "tls.crt"))
    found += _of_hub(settings)
    certificate = address.credentials.client_certificate
    if certificate is not None:
        found.append(
            expiry.WatchedCertificate(name="cluster-client", file=certificate.file, data=certificate.data or None)
        )
    return found


def _of_hub(settings: AgentSettings) -> list[expiry.WatchedCertificate]:
    hub = settings.hub
    if hub.config_file is None or hub.driver == "pubsub":
        return []
    if hub.driver == "mqtt":
        return expiry.of_connection(mqtt_config.read(hub.config_file, flag=_FLAG).endpoint, prefix="workload-source")
    return expiry.of_connection(grpc_config.read(hub.config_file, flag=_FLAG).endpoint, prefix="workload-source")
