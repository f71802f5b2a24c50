"""Define the certificates of a client connection: certificate authority, client certificate and key.

The files are read for every new connection, so that a rotated certificate needs no restart.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM files or PEM data; data takes precedence over a file."""

    ca_file: Path | None = None
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    client_cert_data: bytes | None = field(default=None, repr=False)
    client_key_data: bytes | None = field(default=None, repr=False)

    @property
    def has_ca(self) -> bool:
        """Whether a certificate authority is configured."""
        return bool(self.ca_data or self.ca_file)

    @property
    def has_client_cert(self) -> bool:
        """Whether a client certificate is configured."""
        return bool(self.client_cert_data or self.client_cert_file)

    @property
    def has_client_key(self) -> bool:
        """Whether the key of a client certificate is configured."""
        return bool(self.client_key_data or self.client_key_file)
