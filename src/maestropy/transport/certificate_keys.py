"""Read the keys about certificates, which the configuration files of all drivers share."""

from pathlib import Path
from typing import TypedDict

from maestropy.flags import SettingsError, document
from maestropy.transport.certificates import Certificates

KEYS = frozenset({"caFile", "caData", "clientCertFile", "clientCertData", "clientKeyFile", "clientKeyData"})


class Fields(TypedDict):
    """The fields of `Certificates`, for the endpoint that has more than them."""

    ca_file: Path | None
    ca_data: bytes | None
    client_cert_file: Path | None
    client_cert_data: bytes | None
    client_key_file: Path | None
    client_key_data: bytes | None


def read(section: document.Section) -> Fields:
    """Return what a file says about certificates."""
    return Fields(
        ca_file=section.path("caFile"),
        ca_data=section.data("caData"),
        client_cert_file=section.path("clientCertFile"),
        client_cert_data=section.data("clientCertData"),
        client_key_file=section.path("clientKeyFile"),
        client_key_data=section.data("clientKeyData"),
    )


def check(found: Certificates, *, origin: str) -> None:
    """Refuse a certificate without its key; the words before the semicolon are the Go programs', people search them."""
    if found.has_client_cert != found.has_client_key:
        raise SettingsError(
            f"{origin}: either both or none of clientCertFile and clientKeyFile must be set; add the missing one"
        )
