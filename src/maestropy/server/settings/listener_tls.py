"""List and check the certificate files of the listeners."""

from collections.abc import Iterator
from pathlib import Path

from maestropy.flags import SettingsError
from maestropy.server.settings.model import ServerSettings
from maestropy.transport.tls import credentials as tls


def check_files(settings: ServerSettings) -> None:
    """Raise SettingsError for the first certificate, key or client CA that cannot be used."""
    try:
        for files in certificate_files(settings):
            tls.verify(files)
    except tls.TlsError as error:
        raise SettingsError(str(error)) from error


def certificate_files(settings: ServerSettings) -> Iterator[tls.TlsFiles]:
    """Yield the certificate files of the listeners that use TLS; raises `TlsError` if only a part of them is given."""
    http, grpc, broker = settings.http, settings.grpc, settings.broker
    groups: list[tuple[Path | None, Path | None, Path | None, tls.TlsFlags]] = []
    if any((http.enable_https, settings.metrics.enable_https, settings.health.enable_https)):
        groups.append((http.cert_file, http.key_file, None, tls.HTTPS))
    if grpc.enabled:
        client_ca = grpc.client_ca_file if grpc.authn_type == "mtls" else None
        groups.append((grpc.tls_cert_file, grpc.tls_key_file, client_ca, tls.SOURCES))
    if settings.serves_agents:
        groups.append((broker.tls_cert_file, broker.tls_key_file, broker.client_ca_file, tls.BROKER))
    for cert, key, client_ca, flags in groups:
        files = tls.tls_files(str(cert or ""), str(key or ""), flags=flags, client_ca=str(client_ca or ""))
        if files is not None:
            yield files
