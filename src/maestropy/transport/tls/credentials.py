"""Build TLS credentials of listeners that reload their certificate files.

Every handshake compares the stamps of the files, so there is no timer and no restart. New files are used only when they
are complete and the key matches the certificate; otherwise the last valid ones stay in use and the problem is reported
once. `maestropy.transport.peer_identity` reads the identity of a peer from a finished handshake.
"""

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

OnProblem = Callable[[str], None]
"""Called with the reason why new files are not used; gRPC calls it from its own thread, and it must not raise."""


class TlsError(Exception):
    """A TLS file of the command line cannot be used; the text names the flag and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFlags:
    """The names of the TLS flags of one listener, for errors."""

    cert: str
    key: str
    client_ca: str


HTTPS = TlsFlags(cert="--https-cert-file", key="--https-key-file", client_ca="--https-client-ca-file")
SOURCES = TlsFlags(cert="--grpc-tls-cert-file", key="--grpc-tls-key-file", client_ca="--grpc-client-ca-file")
BROKER = TlsFlags(
    cert="--grpc-broker-tls-cert-file",
    key="--grpc-broker-tls-key-file",
    client_ca="--grpc-broker-client-ca-file",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """The paths of the certificate chain, its key and the optional client CA."""

    cert: Path
    key: Path
    client_ca: Path | None
    flags: TlsFlags


def tls_files(cert: str, key: str, *, flags: TlsFlags, client_ca: str = "") -> TlsFiles | None:
    """Return the TLS files, or None when TLS is not configured; raise `TlsError` if only some of the flags are set."""
    if not cert and not key:
        if client_ca:
            raise TlsError(
                f"{flags.client_ca} is set but {flags.cert} and {flags.key} are not: client certificates "
                f"cannot be checked without TLS; set all three or none"
            )
        return None
    if not cert or not key:
        present, missing = (flags.cert, flags.key) if cert else (flags.key, flags.cert)
        raise TlsError(f"{present} is set but {missing} is not: TLS needs both the certificate and its key")
    return TlsFiles(cert=Path(cert), key=Path(key), client_ca=Path(client_ca) if client_ca else None, flags=flags)


def https_context(
    files: TlsFiles, *, on_problem: OnProblem, minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
) -> ssl.SSLContext:
    """Return a server context that uses the newest valid files in every handshake.

    A client certificate is required if and only if a client CA is set.
    """
    reloader = _Reloader(files, build=lambda material: _build_context(material, minimum=minimum), on_problem=on_problem)
    outer = reloader.current()

    def choose(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = reloader.current()

    # OpenSSL calls it in every handshake, also without a server name. Loading the new pair into the same context
    # would keep an old RSA certificate beside a new ECDSA one.
    outer.sni_callback = choose
    return outer


def grpc_credentials(files: TlsFiles, *, on_problem: OnProblem) -> grpc.ServerCredentials:
    """Return gRPC server credentials that use the newest valid files in every handshake.

    A client certificate is required if and only if a client CA is set. gRPC itself offers TLS 1.2 and 1.3.
    """
    reloader = _Reloader(files, build=_build_grpc_configuration, on_problem=on_problem)
    return grpc.dynamic_ssl_server_credentials(
        reloader.current(), reloader.current, require_client_authentication=files.client_ca is not None
    )


def verify(files: TlsFiles) -> x509.Certificate:
    """Read and check all files, and return the certificate of the listener; raises `TlsError` with the flag."""
    return _certificates(_read_material(files).cert, path=files.cert, flag=files.flags.cert)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """The contents of the files; the key matches the certificate."""

    files: TlsFiles
    cert: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None


def _build_context(material: _Material, *, minimum: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    # The ssl module loads a pair only from paths. If the files change just now, OpenSSL rejects a mismatched pair.
    # The empty password prevents a prompt at a terminal.
    context.load_cert_chain(material.files.cert, material.files.key, password="")
    if material.client_ca is not None:
        context.load_verify_locations(cadata=material.client_ca.decode("ascii"))
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session is not verified again: without session tickets a rotated CA takes effect at once.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _build_grpc_configuration(material: _Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.cert)], root_certificates=material.client_ca
    )


def _read_material(files: TlsFiles) -> _Material:
    """Read and check all files; raise `TlsError` with the flag of an invalid one."""
    cert = _read(files.cert, flag=files.flags.cert)
    key = _read(files.key, flag=files.flags.key)
    leaf = _certificates(cert, path=files.cert, flag=files.flags.cert)[0]
    if leaf.public_key() != _private_key(key, files=files).public_key():
        raise TlsError(
            f"{files.flags.key}: the key in {files.key} does not belong to the first certificate in "
            f"{files.cert} ({files.flags.cert}); give the key that certificate was issued for"
        )
    return _Material(files=files, cert=cert, key=key, client_ca=_read_client_ca(files))


def _read_client_ca(files: TlsFiles) -> bytes | None:
    if files.client_ca is None:
        return None
    bundle = _read(files.client_ca, flag=files.flags.client_ca)
    certificates = _certificates(bundle, path=files.client_ca, flag=files.flags.client_ca)
    # Encoded again, because OpenSSL rejects comments in a CA bundle that are not ASCII.
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates)


def _read(path: Path, *, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise TlsError(f"{flag}: {path} does not exist") from error
    except OSError as error:
        raise TlsError(f"{flag}: {path} cannot be read ({error.strerror}); check its permissions") from error


def _certificates(pem: bytes, *, path: Path, flag: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise TlsError(f"{flag}: {path} holds no readable PEM certificate (a block BEGIN CERTIFICATE)") from error


def _private_key(pem: bytes, *, files: TlsFiles) -> PrivateKeyTypes:
    origin = f"{files.flags.key}: {files.key}"
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise TlsError(f"{origin} is encrypted; give an unencrypted key in a protected file") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"{origin} holds no readable PEM private key (a block BEGIN PRIVATE KEY)") from error


_Stamp = tuple[tuple[int, ...] | None, ...]


def _stamp(files: TlsFiles) -> _Stamp:
    """Return a value that changes when a file is written, replaced or relinked, or when its permissions change."""
    return tuple(_stamp_one(path) for path in (files.cert, files.key, files.client_ca) if path is not None)


def _stamp_one(path: Path) -> tuple[int, ...] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size)


_Built = TypeVar("_Built")


class _Reloader(Generic[_Built]):
    """Keeps the credentials of the newest valid files; thread-safe."""

    def __init__(self, files: TlsFiles, *, build: Callable[[_Material], _Built], on_problem: OnProblem) -> None:
        self._files = files
        self._build = build
        self._on_problem = on_problem
        self._lock = threading.Lock()
        self._reported: str | None = None
        # The stamp is taken before reading: files that change meanwhile are reloaded at the next handshake.
        self._stamp = _stamp(files)
        self._built = self._load()

    def current(self) -> _Built:
        """Return the credentials of the newest valid files; never raises."""
        with self._lock:
            stamp = _stamp(self._files)
            if stamp != self._stamp:
                self._stamp = stamp
                self._replace()
            return self._built

    def _replace(self) -> None:
        try:
            self._built = self._load()
        except TlsError as error:
            problem = f"{error}; the last good certificate stays in use"
            if problem != self._reported:
                self._reported = problem
                self._on_problem(problem)
        else:
            self._reported = None

    def _load(self) -> _Built:
        files = self._files
        try:
            return self._build(_read_material(files))
        except (OSError, ValueError, UnsupportedAlgorithm) as error:  # ssl.SSLError is an OSError
            raise TlsError(f"{files.flags.cert}: OpenSSL rejects {files.cert} with {files.key}: {error}") from error
