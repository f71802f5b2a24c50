"""Whom a connection trusts, and the certificate it can show: the value that every endpoint has.

The files are opened by the connection, anew for each, so that a rotated certificate needs no restart.
"""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM, as files or as such; data wins over its file."""

    ca_file: Path | None = None
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    ca_data: bytes | None = field(default=None, repr=False)
    client_cert_data: bytes | None = field(default=None, repr=False)
    client_key_data: bytes | None = field(default=None, repr=False)

    @property
    def has_ca(self) -> bool:
        """Whether we say ourselves whom to trust."""
        return bool(self.ca_data or self.ca_file)

    @property
    def has_client_cert(self) -> bool:
        """Whether we can show a certificate."""
        return bool(self.client_cert_data or self.client_cert_file)

    @property
    def has_client_key(self) -> bool:
        """Whether we have the key of a certificate."""
        return bool(self.client_key_data or self.client_key_file)
