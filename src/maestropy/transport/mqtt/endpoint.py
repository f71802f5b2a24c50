"""Define the endpoint of an MQTT broker, and build its TLS context."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from maestropy.transport.tls.certificates import Certificates
from maestropy.wire.events import mqtt_topics as topics

FileStamps = tuple[tuple[int, int] | None, ...]
"""A value that changes when one of the certificate files is replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttEndpoint(Certificates):
    """The address of the broker and the client's credentials; files are read again for every connection."""

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
    """How often the certificate files are checked; a change ends the connection, the next one uses the new files."""

    @property
    def is_secure(self) -> bool:
        """Whether the connection uses TLS."""
        return self.has_ca or self.has_client_cert


def split_host(broker_host: str) -> tuple[str, int]:
    """Return host and port; raise `ValueError` when the port is missing or the host is invalid."""
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


def tls_context(endpoint: MqttEndpoint) -> ssl.SSLContext:
    """Return a TLS context with the current files; raise `OSError` when one cannot be used."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    authorities = endpoint.ca_data or (endpoint.ca_file.read_bytes() if endpoint.ca_file else b"")
    if authorities:
        context.load_verify_locations(cadata=authorities.decode("ascii", errors="ignore"))
    if endpoint.has_client_cert:
        _load_pair(context, endpoint)
    return context


def _load_pair(context: ssl.SSLContext, endpoint: MqttEndpoint) -> None:
    # The ssl module loads a pair only from files; these are readable by this user only and are deleted at once.
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


def file_stamps(endpoint: MqttEndpoint) -> FileStamps:
    """Return the stamps of the certificate files."""
    files = (endpoint.ca_file, endpoint.client_cert_file, endpoint.client_key_file)
    return tuple(_stamp(path) for path in files if path is not None)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns
