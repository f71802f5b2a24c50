"""Which certificates may act for which consumer."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maestropy.server.auth.agents import (
    AgentIdentityPolicy,
    UnnamedConsumers,
    authorize_agent,
    default_policy,
    may_act_for,
)
from maestropy.server.auth.denied import Denied, DeniedCode
from maestropy.transport.peer_identity import ANONYMOUS, Peer, PeerIdentity
from tests.certificates import make_ca

EXACT, SUFFIX, WARN, ANY = AgentIdentityPolicy

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        pytest.param("c1", (), id="own-name"),
        pytest.param("system:open-cluster-management:c1:agent7", (), id="registered-agent"),
        pytest.param("anyone", ("x", "system:open-cluster-management:c1"), id="registered-group"),
        pytest.param("anyone", ("maestro:consumer:c1",), id="consumer-group"),
    ],
)
def test_certificate_may_act_for_c1(user: str, groups: tuple[str, ...]) -> None:
    identity = PeerIdentity(user=user, groups=groups)
    assert may_act_for("c1", identity=identity, policy=EXACT)
    assert may_act_for("c1", identity=identity, policy=SUFFIX)


@pytest.mark.parametrize("user", ["c1-client", "c1-work-agent", "c1-work-agent-client"])
def test_suffixes_are_accepted_only_when_asked_for(user: str) -> None:
    assert may_act_for("c1", identity=PeerIdentity(user=user), policy=SUFFIX)
    assert not may_act_for("c1", identity=PeerIdentity(user=user), policy=EXACT)


@pytest.mark.parametrize(
    ("user", "groups", "consumer"),
    [
        pytest.param("c2", (), "c1", id="other-consumer"),
        pytest.param("", (), "c1", id="anonymous"),
        pytest.param("", (), "", id="anonymous-for-empty-consumer"),
        pytest.param("c10", (), "c1", id="longer-name"),
        pytest.param("c1-work-agent-client-client", (), "c1", id="unknown-suffix"),
        pytest.param("system:open-cluster-management:c1:", (), "c1", id="no-agent-name"),
        pytest.param("system:open-cluster-management:c1", (), "c1", id="group-form-as-user"),
        pytest.param("system:open-cluster-management:c10:agent", (), "c1", id="registered-elsewhere"),
        pytest.param("a", ("system:open-cluster-management:c1:agent",), "c1", id="user-form-as-group"),
        pytest.param("a", ("maestro:consumer:c10",), "c1", id="another-consumer-group"),
        pytest.param("a", ("system:open-cluster-management:managed-clusters",), "managed-clusters", id="group-of-all"),
        pytest.param("system:open-cluster-management:cluster:c1:addon:x:agent:y", (), "cluster", id="add-on-user"),
        pytest.param("system:open-cluster-management:c1:a:b", (), "c1:a", id="name-with-colon"),
    ],
)
def test_certificate_may_not_act(user: str, groups: tuple[str, ...], consumer: str) -> None:
    assert not may_act_for(consumer, identity=PeerIdentity(user=user, groups=groups), policy=SUFFIX)


@given(owner=NAMES, consumer=NAMES, agent=NAMES)
def test_certificate_of_another_cluster_may_not_act(owner: str, consumer: str, agent: str) -> None:
    assume(not owner.startswith(consumer))
    for identity in (
        PeerIdentity(user=owner),
        PeerIdentity(user=f"{owner}-work-agent"),
        PeerIdentity(user=f"system:open-cluster-management:{owner}:{agent}"),
        PeerIdentity(user="", groups=(f"system:open-cluster-management:{owner}", f"maestro:consumer:{owner}")),
    ):
        assume(identity.user != consumer)
        assert not may_act_for(consumer, identity=identity, policy=SUFFIX)


@pytest.mark.parametrize("policy", [ANY, WARN])
def test_policies_of_the_go_server_allow_every_certificate(policy: AgentIdentityPolicy) -> None:
    assert may_act_for("c1", identity=ANONYMOUS, policy=policy)


def test_certificate_that_does_not_name_its_consumer_is_logged_once() -> None:
    unnamed = UnnamedConsumers()
    assert not unnamed.is_new(PeerIdentity(user="c1"), "c1")
    assert unnamed.is_new(PeerIdentity(user="grpc-client"), "c1")
    assert not unnamed.is_new(PeerIdentity(user="grpc-client"), "c1")
    assert unnamed.is_new(PeerIdentity(user="grpc-client"), "c2")


def test_default_is_to_warn_with_client_ca() -> None:
    assert default_policy(client_ca=True) is WARN
    assert default_policy(client_ca=False) is ANY


def test_agent_is_authorized_by_its_certificate(tmp_path: Path) -> None:
    peer = Peer(certificate=make_ca(tmp_path).issue(cn="c1-work-agent").pem())
    assert authorize_agent(peer, consumer="c1", policy=SUFFIX).user == "c1-work-agent"
    with pytest.raises(Denied, match=r"may not act for consumer 'c2'.*'maestro:consumer:c2'$") as caught:
        authorize_agent(peer, consumer="c2", policy=SUFFIX)
    assert caught.value.code is DeniedCode.PERMISSION_DENIED
    with pytest.raises(Denied, match=r"accepts this name with --grpc-broker-agent-identity=suffix$"):
        authorize_agent(peer, consumer="c1", policy=EXACT)


@pytest.mark.parametrize(
    ("peer", "code"),
    [
        pytest.param(Peer(), DeniedCode.PERMISSION_DENIED, id="no-certificate"),
        pytest.param(Peer(certificate=b"junk"), DeniedCode.UNAUTHENTICATED, id="unreadable-certificate"),
    ],
)
def test_agent_without_a_usable_certificate_is_denied(peer: Peer, code: DeniedCode) -> None:
    with pytest.raises(Denied) as caught:
        authorize_agent(peer, consumer="c1", policy=EXACT)
    assert caught.value.code is code
