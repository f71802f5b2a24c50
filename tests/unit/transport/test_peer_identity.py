"""User and groups are read from client certificates, tokens from metadata."""

from pathlib import Path

import pytest

from maestropy.transport.peer_identity import (
    Peer,
    PeerIdentity,
    Unidentified,
    bearer_token,
    identify,
    read_certificate,
    read_peer,
)
from tests.certificates import make_ca


@pytest.mark.parametrize(
    ("cn", "o", "expected"),
    [
        pytest.param("policy", ["admins"], PeerIdentity(user="policy", groups=("admins",)), id="one-group"),
        pytest.param("policy", ["a", "b"], PeerIdentity(user="policy", groups=("a", "b")), id="several-groups"),
        pytest.param("n" * 200, ["a"], PeerIdentity(user="n" * 200, groups=("a",)), id="longer-than-the-standard"),
        pytest.param("Zoë", ["größe"], PeerIdentity(user="Zoë", groups=("größe",)), id="not-ascii"),
    ],
)
def test_certificate_names_user_and_groups(tmp_path: Path, cn: str, o: list[str], expected: PeerIdentity) -> None:
    assert identify(Peer(certificate=make_ca(tmp_path).issue(cn=cn, o=o).pem())) == expected


@pytest.mark.parametrize(
    ("cn", "o", "text"),
    [
        pytest.param(None, ["admins"], "could not find user in peer certificate", id="no-user"),
        pytest.param("", ["admins"], "could not find user in peer certificate", id="empty-user"),
        pytest.param("policy", [], "could not find group in peer certificate", id="no-group"),
    ],
)
def test_certificate_without_user_or_group_is_rejected(tmp_path: Path, cn: str | None, o: list[str], text: str) -> None:
    with pytest.raises(Unidentified, match=f"^{text}$"):
        identify(Peer(certificate=make_ca(tmp_path).issue(cn=cn, o=o).pem()))


@pytest.mark.parametrize("certificate", [pytest.param(None, id="absent"), pytest.param(b"not PEM", id="unreadable")])
def test_missing_or_unreadable_certificate_is_rejected(certificate: bytes | None) -> None:
    with pytest.raises(Unidentified, match=r"^could not verify peer certificate$"):
        identify(Peer(certificate=certificate))


def test_certificate_without_group_can_be_read(tmp_path: Path) -> None:
    assert read_certificate(make_ca(tmp_path).issue(cn="cluster1").pem()) == PeerIdentity(user="cluster1")


def test_peer_is_read_from_the_grpc_call() -> None:
    context = {"x509_common_name": [b"policy"], "x509_pem_cert": [b"PEM"]}
    peer = read_peer(context, metadata=[("user-agent", "x"), ("authorization", "Bearer s3cret")])
    assert peer == Peer(certificate=b"PEM", authorization="Bearer s3cret")
    assert "s3cret" not in repr(peer)


def test_peer_without_tls_has_no_credentials() -> None:
    assert read_peer({}, metadata=[]) == Peer()


@pytest.mark.parametrize(
    ("authorization", "token"),
    [
        pytest.param("Bearer abc", "abc", id="usual"),
        pytest.param("bearer  abc ", "abc", id="lower-case-and-spaces"),
        pytest.param("Basic abc", None, id="other-scheme"),
        pytest.param("Bearer ", None, id="empty"),
        pytest.param("abc", None, id="no-scheme"),
        pytest.param(None, None, id="absent"),
    ],
)
def test_bearer_token_is_read_from_the_authorization_value(authorization: str | None, token: str | None) -> None:
    assert bearer_token(authorization) == token


def test_the_span_of_the_caller_is_read() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert read_peer({}, metadata=[("traceparent", parent), ("traceparent", "later")]) == Peer(trace_parent=parent)
    assert read_peer({}, metadata=[("Authorization", b"Bearer a\xff"), ("authorization", "Bearer b")]) == Peer(
        authorization="Bearer a\ufffd"
    )
