"""List the certificates that the settings of a server name."""

from pathlib import Path

from maestropy.server.settings.model import ServerSettings
from maestropy.transport.mqtt import config as mqtt_config
from maestropy.transport.tls import expiry


def watched(settings: ServerSettings) -> list[expiry.WatchedCertificate]:
    """Return the certificates of the listeners in use and of the message broker; reads the broker's configuration."""
    http, grpc, broker = settings.http, settings.grpc, settings.broker
    serves_https = any((http.enable_https, settings.metrics.enable_https, settings.health.enable_https))
    files: list[tuple[str, Path | None, bool]] = []
    if serves_https:
        files.append(("https-cert-file", http.cert_file, False))
    if grpc.enabled:
        files += [("grpc-tls-cert-file", grpc.tls_cert_file, False), ("grpc-client-ca-file", grpc.client_ca_file, True)]
    if settings.serves_agents:
        files += [
            ("grpc-broker-tls-cert-file", broker.tls_cert_file, False),
            ("grpc-broker-client-ca-file", broker.client_ca_file, True),
        ]
    found = [
        expiry.WatchedCertificate(name=name, file=file, is_bundle=is_bundle) for name, file, is_bundle in files if file
    ]
    if settings.message_broker == "mqtt":
        config = mqtt_config.read(broker.config_file, flag="--message-broker-config-file")
        found += expiry.of_connection(config.endpoint, prefix="message-broker")
    return found
