"""When certificates expire: of a chain the first one, of a bundle the last, and never an error."""

import datetime as dt
from pathlib import Path

from maestropy.transport.tls import expiry
from maestropy.transport.tls.certificates import Certificates
from tests.certificates import make_ca


def days_left(watched: expiry.WatchedCertificate) -> int:
    return round((watched.expiry() - dt.datetime.now(dt.UTC).timestamp()) / 86400)


def test_expiry_of_a_chain_is_that_of_its_first_certificate(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    leaf = ca.issue(cn="a", lifetime=dt.timedelta(days=3)).pem()
    longer = ca.issue(cn="b", lifetime=dt.timedelta(days=30)).pem()
    assert days_left(expiry.WatchedCertificate(name="x", data=leaf + longer)) == 3
    assert days_left(expiry.WatchedCertificate(name="x", data=longer + leaf)) == 30


def test_expiry_of_a_bundle_is_that_of_its_last_authority(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    file = tmp_path / "bundle.pem"
    file.write_bytes(ca.issue(cn="a", expired=True).pem() + ca.issue(cn="b", lifetime=dt.timedelta(days=9)).pem())
    assert days_left(expiry.WatchedCertificate(name="x", file=file, is_bundle=True)) == 9
    assert days_left(expiry.WatchedCertificate(name="x", file=file)) == -1


def test_unreadable_certificate_counts_as_expired(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("no certificate")
    reported: dict[str, float] = {}
    expiry.measure(
        [
            expiry.WatchedCertificate(name="missing", file=tmp_path / "none.pem"),
            expiry.WatchedCertificate(name="damaged", file=damaged),
        ],
        report=reported.__setitem__,
    )
    assert reported == {"missing": 0.0, "damaged": 0.0}


def test_rotated_certificate_is_read_again(tmp_path: Path) -> None:
    ca = make_ca(tmp_path)
    short, longer = (ca.issue(cn="a", lifetime=dt.timedelta(days=days)) for days in (2, 20))
    (watched,) = expiry.of_connection(Certificates(client_cert_file=short.cert), prefix="workload-source")
    assert (watched.name, days_left(watched)) == ("workload-source-client", 2)
    short.replace_with(longer)
    assert days_left(watched) == 20
