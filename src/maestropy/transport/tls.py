"""Turn certificate files into listening credentials that follow the files.

Answers one question: which certificate does the next handshake use? Files are compared by stamp on
every handshake, so there is no timer and no restart; a new set is used only when it is complete and
its key fits, otherwise the last good one stays and the problem is told once.
It does not decide who a peer is; `maestropy.transport.identity` reads that from a finished handshake.
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
"""Told why new files were not taken; gRPC calls it from its own thread, and it must not raise."""


class TlsError(Exception):
    """The files named on the command line cannot be used; the text names the flag and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """What the person typed, so that errors speak their language."""

    cert: str
    key: str
    client_ca: str


HTTPS = Flags(cert="--https-cert-file", key="--https-key-file", client_ca="--https-client-ca-file")
SOURCES = Flags(cert="--grpc-tls-cert-file", key="--grpc-tls-key-file", client_ca="--grpc-client-ca-file")
BROKER = Flags(
    cert="--grpc-broker-tls-cert-file",
    key="--grpc-broker-tls-key-file",
    client_ca="--grpc-broker-client-ca-file",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where the certificate chain, its key and the optional client CA live."""

    cert: Path
    key: Path
    client_ca: Path | None
    flags: Flags


def name_files(cert: str, key: str, *, flags: Flags, client_ca: str = "") -> Files | None:
    """Return the files to use, or None when TLS was not asked for; refuse half a request."""
    if not cert and not key:
        if client_ca:
            raise TlsError(
                f"{flags.client_ca} is set but {flags.cert} and {flags.key} are not: client certificates "
                f"cannot be checked without TLS; set all three or none"
            )
        return None
    if not cert or not key:
        given, missing = (flags.cert, flags.key) if cert else (flags.key, flags.cert)
        raise TlsError(f"{given} is set but {missing} is not: TLS needs both the certificate and its key")
    return Files(cert=Path(cert), key=Path(key), client_ca=Path(client_ca) if client_ca else None, flags=flags)


def https_context(
    files: Files, *, on_problem: OnProblem, minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
) -> ssl.SSLContext:
    """Return a server context whose every handshake uses the newest good files.

    A client certificate is required iff the files name a client CA.
    """
    reloader = _Reloader(files, build=lambda material: _build_context(material, minimum=minimum), on_problem=on_problem)
    outer = reloader.current()

    def choose(connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = reloader.current()

    # OpenSSL asks at every handshake, also without a server name. Loading the new pair into the same
    # context instead would keep an old RSA certificate beside a new ECDSA one.
    outer.sni_callback = choose
    return outer


def grpc_credentials(files: Files, *, on_problem: OnProblem) -> grpc.ServerCredentials:
    """Return gRPC server credentials whose every handshake uses the newest good files.

    A client certificate is required iff the files name a client CA. gRPC itself offers TLS 1.2 and 1.3.
    """
    reloader = _Reloader(files, build=_build_grpc_configuration, on_problem=on_problem)
    return grpc.dynamic_ssl_server_credentials(
        reloader.current(), reloader.current, require_client_authentication=files.client_ca is not None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """One complete set of file contents whose key fits its certificate."""

    files: Files
    cert: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None


def _build_context(material: _Material, *, minimum: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    # The module loads a pair only from paths. Should the files change right now, OpenSSL refuses a
    # mismatched pair itself. The password keeps it from ever asking at a terminal.
    context.load_cert_chain(material.files.cert, material.files.key, password="")
    if material.client_ca is not None:
        context.load_verify_locations(cadata=material.client_ca.decode("ascii"))
        context.verify_mode = ssl.CERT_REQUIRED
        # A resumed session is not verified again: without tickets a rotated CA counts at once.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _build_grpc_configuration(material: _Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.cert)], root_certificates=material.client_ca
    )


def _read_material(files: Files) -> _Material:
    """Read and check all files, or raise `TlsError` naming the flag at fault."""
    cert = _read(files.cert, flag=files.flags.cert)
    key = _read(files.key, flag=files.flags.key)
    leaf = _certificates(cert, path=files.cert, flag=files.flags.cert)[0]
    if leaf.public_key() != _private_key(key, files=files).public_key():
        raise TlsError(
            f"{files.flags.key}: the key in {files.key} does not belong to the first certificate in "
            f"{files.cert} ({files.flags.cert}); give the key that certificate was issued for"
        )
    return _Material(files=files, cert=cert, key=key, client_ca=_read_client_ca(files))


def _read_client_ca(files: Files) -> bytes | None:
    if files.client_ca is None:
        return None
    bundle = _read(files.client_ca, flag=files.flags.client_ca)
    found = _certificates(bundle, path=files.client_ca, flag=files.flags.client_ca)
    # Written anew, because bundles carry comments that OpenSSL takes only in ASCII.
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in found)


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


def _private_key(pem: bytes, *, files: Files) -> PrivateKeyTypes:
    where = f"{files.flags.key}: {files.key}"
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise TlsError(f"{where} is encrypted; give an unencrypted key in a protected file") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise TlsError(f"{where} holds no readable PEM private key (a block BEGIN PRIVATE KEY)") from error


_Stamp = tuple[tuple[int, ...] | None, ...]


def _stamp(files: Files) -> _Stamp:
    """Return what changes whenever a file is written, replaced, re-linked or changes its permissions."""
    return tuple(_stamp_one(path) for path in (files.cert, files.key, files.client_ca) if path is not None)


def _stamp_one(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


_Built = TypeVar("_Built")


class _Reloader(Generic[_Built]):
    """Holds the newest good set; every thread may ask."""

    def __init__(self, files: Files, *, build: Callable[[_Material], _Built], on_problem: OnProblem) -> None:
        self._files = files
        self._build = build
        self._on_problem = on_problem
        self._lock = threading.Lock()
        self._told: str | None = None
        # The stamp is taken before reading: files changed meanwhile look new at the next handshake.
        self._stamp = _stamp(files)
        self._built = self._load()

    def current(self) -> _Built:
        """Return the newest good set; never raises."""
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
            if problem != self._told:
                self._told = problem
                self._on_problem(problem)
        else:
            self._told = None

    def _load(self) -> _Built:
        files = self._files
        try:
            return self._build(_read_material(files))
        except (OSError, ValueError, UnsupportedAlgorithm) as error:  # ssl.SSLError is an OSError
            raise TlsError(f"{files.flags.cert}: OpenSSL refuses {files.cert} with {files.key}: {error}") from error
