"""Real certificates for tests, made in a millisecond each.

    ca = make_ca(tmp_path)
    server = ca.issue(cn="localhost", san=["localhost", "127.0.0.1"])
    client = ca.issue(cn="cluster1", o=["maestro:consumer:cluster1"])
    stranger = make_ca(tmp_path).issue(cn="cluster1")

Every certificate has files of its own below the given directory. `CertFiles.replace_with` rotates
one in place, as an operator's tool would.
"""

import datetime as dt
import ipaddress
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class CertFiles:
    """A certificate and its key, each in a PEM file."""

    cert: Path
    key: Path

    def replace_with(self, other: "CertFiles") -> None:
        """Put the other's certificate and key in place of ours; each file changes atomically."""
        put(self.cert, other.cert.read_bytes())
        put(self.key, other.key.read_bytes())

    def pem(self) -> bytes:
        """Return the certificate."""
        return self.cert.read_bytes()


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority; `cert` is the file that others trust."""

    directory: Path
    cert: Path
    certificate: x509.Certificate
    signing_key: PrivateKey

    def issue(
        self,
        *,
        cn: str | None,
        o: Sequence[str] = (),
        san: Sequence[str] = (),
        lifetime: dt.timedelta = dt.timedelta(days=1),
        expired: bool = False,
        key: PrivateKey | None = None,
    ) -> CertFiles:
        """Issue a certificate good for servers and clients alike; `cn=None` leaves the name out."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(_subject(cn, o))
            .issuer_name(self.certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=2))
            .not_valid_after(now + (dt.timedelta(days=-1) if expired else lifetime))
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.signing_key.public_key()),
                critical=False,
            )
        )
        if san:
            names = x509.SubjectAlternativeName([_alternative(each) for each in san])
            builder = builder.add_extension(names, critical=False)
        stem = self.directory / f"{next(_numbers):03}"
        files = CertFiles(cert=stem.with_suffix(".crt"), key=stem.with_suffix(".key"))
        put(files.cert, _pem(builder.sign(self.signing_key, hashes.SHA256())))
        put(files.key, _key_pem(key))
        return files

    def key_file(self) -> Path:
        """Write the key that signs to a file, for those who issue certificates themselves."""
        path = self.cert.with_suffix(".key")
        put(path, _key_pem(self.signing_key))
        return path


def make_ca(directory: Path, *, cn: str = "test authority", key: PrivateKey | None = None) -> Authority:
    """Make an authority nobody else trusts; its files go below `directory`."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    number = next(_numbers)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{cn} {number}")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=3))
        .not_valid_after(now + dt.timedelta(days=3))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_CA_USAGE, critical=True)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{number:03}-ca.crt"
    put(path, _pem(certificate))
    return Authority(directory=directory, cert=path, certificate=certificate, signing_key=key)


def rsa_key() -> rsa.RSAPrivateKey:
    """Return an RSA key, for tests that care about the kind of key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def put(path: Path, content: bytes) -> None:
    """Replace a file's content atomically, as secret mounts and good tools do."""
    fresh = path.with_name(f".{path.name}.{next(_numbers)}")
    fresh.write_bytes(content)
    fresh.replace(path)


_CA_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _subject(cn: str | None, organizations: Sequence[str]) -> x509.Name:
    parts = []
    if organizations:
        # One relative name with several values: what Go programs, and so Kubernetes, issue.
        values = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
        parts.append(x509.RelativeDistinguishedName(values))
    if cn is not None:
        with warnings.catch_warnings():
            # Go programs issue names longer than the 64 bytes of the standard; so must we.
            warnings.simplefilter("ignore")
            name = x509.NameAttribute(NameOID.COMMON_NAME, cn, _validate=False)
        parts.append(x509.RelativeDistinguishedName([name]))
    return x509.Name(parts)


def _alternative(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
