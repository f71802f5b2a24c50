"""Read the certificate keys that the configuration files of gRPC and MQTT share."""

from pathlib import Path
from typing import TypedDict

from maestropy.flags import SettingsError, document
from maestropy.transport.tls.certificates import Certificates

KEYS = frozenset({"caFile", "caData", "clientCertFile", "clientCertData", "clientKeyFile", "clientKeyData"})


class CertificateFields(TypedDict):
    """The fields of `Certificates`, as keyword arguments of an endpoint."""

    ca_file: Path | None
    ca_data: bytes | None
    client_cert_file: Path | None
    client_cert_data: bytes | None
    client_key_file: Path | None
    client_key_data: bytes | None


def read(section: document.Section) -> CertificateFields:
    """Return the certificate settings of a configuration file."""
    return CertificateFields(
        ca_file=section.path("caFile"),
        ca_data=section.data("caData"),
        client_cert_file=section.path("clientCertFile"),
        client_cert_data=section.data("clientCertData"),
        client_key_file=section.path("clientKeyFile"),
        client_key_data=section.data("clientKeyData"),
    )


def check(certificates: Certificates, *, origin: str) -> None:
    """Reject a certificate without its key; the text before the semicolon is Go's, because operators search for it."""
    if certificates.has_client_cert != certificates.has_client_key:
        raise SettingsError(
            f"{origin}: either both or none of clientCertFile and clientKeyFile must be set; add the missing one"
        )
