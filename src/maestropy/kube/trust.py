"""Turn an address and a proof into the TLS context of the next connection, built anew when certificate files change."""

import os
import ssl
import tempfile
from pathlib import Path

from maestropy.kube.address import ClusterAddress, Pem
from maestropy.kube.credentials import Proof
from maestropy.kube.errors import BadConfig

_Stamp = tuple[object, ...]


class TlsContexts:
    """Holds the newest context; connections already open keep theirs."""

    def __init__(self, address: ClusterAddress) -> None:
        self._address = address
        self._stamp: _Stamp | None = None
        self._context: ssl.SSLContext | None = None

    def current(self, proof: Proof) -> ssl.SSLContext | None:
        """Return the context to connect with, None for plain HTTP."""
        if self._address.server.startswith("http://"):
            return None
        stamp = tuple(_stamp(each) for each in (self._address.ca, proof.certificate, proof.key))
        if self._context is None or stamp != self._stamp:
            try:
                self._context = _build(self._address, proof)
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                # A rotation writes several files; between two of them the last good set serves.
                if self._context is None:
                    raise BadConfig(f"{self._address.origin}: the certificates cannot be used: {error}") from error
            self._stamp = stamp
        return self._context


def _build(address: ClusterAddress, proof: Proof) -> ssl.SSLContext:
    # What Kubernetes' own clients accept; the default of this module may be looser or stricter by its build.
    context = ssl.create_default_context(cadata=_text(address.ca) if address.ca else None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Clusters' own authorities are often older than the rule that an authority names its key.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if address.skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if proof.certificate is not None and proof.key is not None:
        _load_pair(context, proof.certificate, proof.key)
    return context


def _load_pair(context: ssl.SSLContext, certificate: Pem, key: Pem) -> None:
    """Give OpenSSL the pair by paths, which is all it takes; data spends that moment in a private directory."""
    with tempfile.TemporaryDirectory(prefix="maestro-") as directory:
        certificate_path = certificate.file or _spill(Path(directory) / "tls.crt", certificate.data)
        key_path = key.file or _spill(Path(directory) / "tls.key", key.data)
        # The password keeps OpenSSL from asking at a terminal.
        context.load_cert_chain(certificate_path, key_path, password="")


def _spill(path: Path, data: bytes) -> Path:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    return path


def _text(pem: Pem) -> str:
    data = pem.file.read_bytes() if pem.file else pem.data
    # Bundles carry comments in any encoding; certificates themselves are ASCII.
    return data.decode("ascii", errors="replace").replace("\ufffd", "?")


def _stamp(pem: Pem | None) -> _Stamp:
    if pem is None or pem.file is None:
        return (pem.data,) if pem else ()
    try:
        found = pem.file.stat()
    except OSError:
        return (None,)
    return found.st_ino, found.st_mtime_ns, found.st_size
