"""Where an MQTT broker is, and how to prove who we are: the value, and what TLS makes of it."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from maestropy.transport.certificates import Certificates
from maestropy.wire import topics

Stamps = tuple[tuple[int, int] | None, ...]
"""Tells two sets of files apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Certificates):
    """Where the broker is and how to prove who we are; files are read again for every new connection."""

    broker_host: str
    """`host:port`."""
    topics: topics.Topics
    username: str = ""
    password: str = field(default="", repr=False)
    keep_alive_seconds: int = 60
    dial_seconds: float = 60.0
    publish_qos: int = 1
    subscribe_qos: int = 1
    reload_seconds: float = 300.0
    """How often certificates are looked at; changed ones end the connection, the next one uses them."""

    @property
    def is_secure(self) -> bool:
        """Whether TLS is spoken."""
        return self.has_ca or self.has_client_cert


def split_host(broker_host: str) -> tuple[str, int]:
    """Return host and port; raises `ValueError` when there is no port."""
    host, _, port = broker_host.rpartition(":")
    has_scheme = "/" in host
    if (
        not host
        or has_scheme
        or host.split() != [host]
        or not (port.isascii() and port.isdigit() and 0 < int(port) < 65536)
    ):
        raise ValueError(broker_host)
    return host.removeprefix("[").removesuffix("]"), int(port)


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """Return how TLS is spoken, with the files as they are now; raises `OSError` when one cannot be used."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    authorities = endpoint.ca_data or (endpoint.ca_file.read_bytes() if endpoint.ca_file else b"")
    if authorities:
        context.load_verify_locations(cadata=authorities.decode("ascii", errors="ignore"))
    if endpoint.has_client_cert:
        _load_pair(context, endpoint)
    return context


def _load_pair(context: ssl.SSLContext, endpoint: Endpoint) -> None:
    # The ssl module takes a pair only from files; those made here are readable by us alone and gone at once.
    with tempfile.TemporaryDirectory(prefix="maestropy-") as folder:
        cert, key = endpoint.client_cert_file, endpoint.client_key_file
        if endpoint.client_cert_data:
            cert = Path(folder) / "cert"
            cert.write_bytes(endpoint.client_cert_data)
        if endpoint.client_key_data:
            key = Path(folder) / "key"
            key.touch(mode=0o600)
            key.write_bytes(endpoint.client_key_data)
        assert cert is not None
        context.load_cert_chain(cert, key, password="")


def stamps(endpoint: Endpoint) -> Stamps:
    """Return what changes whenever one of the files is replaced."""
    files = (endpoint.ca_file, endpoint.client_cert_file, endpoint.client_key_file)
    return tuple(_stamp(path) for path in files if path is not None)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
