"""Which certificates speak for which consumer."""

from pathlib import Path

import pytest
from certificates import make_ca
from hypothesis import assume, given
from hypothesis import strategies as st

from maestropy.server.auth.agents import AgentIdentityPolicy, admit_agent, default_policy, may_speak_for
from maestropy.server.auth.denied import Code, Denied
from maestropy.transport.identity import ANONYMOUS, Identity, Peer

STRICT, ANY = AgentIdentityPolicy.STRICT, AgentIdentityPolicy.ANY

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        pytest.param("c1", (), id="own-name"),
        pytest.param("c1-client", (), id="client"),
        pytest.param("c1-work-agent", (), id="work-agent"),
        pytest.param("c1-work-agent-client", (), id="work-agent-client"),
        pytest.param("system:open-cluster-management:c1:agent7", (), id="registered-agent"),
        pytest.param("anyone", ("x", "system:open-cluster-management:c1"), id="registered-group"),
        pytest.param("anyone", ("maestro:consumer:c1",), id="consumer-group"),
    ],
)
def test_accepted_for_c1(user: str, groups: tuple[str, ...]) -> None:
    assert may_speak_for("c1", identity=Identity(user=user, groups=groups), policy=STRICT)


@pytest.mark.parametrize(
    ("user", "groups", "consumer"),
    [
        pytest.param("c2", (), "c1", id="another-consumer"),
        pytest.param("", (), "c1", id="nobody"),
        pytest.param("", (), "", id="nobody-for-nobody"),
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
def test_refused(user: str, groups: tuple[str, ...], consumer: str) -> None:
    assert not may_speak_for(consumer, identity=Identity(user=user, groups=groups), policy=STRICT)


@given(owner=NAMES, consumer=NAMES, agent=NAMES)
def test_nobody_speaks_for_a_stranger(owner: str, consumer: str, agent: str) -> None:
    assume(not owner.startswith(consumer))
    for identity in (
        Identity(user=owner),
        Identity(user=f"{owner}-work-agent"),
        Identity(user=f"system:open-cluster-management:{owner}:{agent}"),
        Identity(user="", groups=(f"system:open-cluster-management:{owner}", f"maestro:consumer:{owner}")),
    ):
        assume(identity.user != consumer)
        assert not may_speak_for(consumer, identity=identity, policy=STRICT)


def test_escape_hatch_lets_everyone_speak() -> None:
    assert may_speak_for("c1", identity=ANONYMOUS, policy=ANY)


def test_strict_as_soon_as_certificates_are_checked() -> None:
    assert default_policy(client_ca=True) is STRICT
    assert default_policy(client_ca=False) is ANY


def test_agent_is_admitted_by_its_certificate(tmp_path: Path) -> None:
    peer = Peer(certificate=make_ca(tmp_path).issue(cn="c1-work-agent").pem())
    assert admit_agent(peer, consumer="c1", policy=STRICT).user == "c1-work-agent"
    with pytest.raises(Denied, match=r"may not speak for consumer 'c2'.*'maestro:consumer:c2'") as caught:
        admit_agent(peer, consumer="c2", policy=STRICT)
    assert caught.value.code is Code.PERMISSION_DENIED


@pytest.mark.parametrize(
    ("peer", "code"),
    [
        pytest.param(Peer(), Code.PERMISSION_DENIED, id="no-certificate"),
        pytest.param(Peer(certificate=b"junk"), Code.UNAUTHENTICATED, id="unreadable-certificate"),
    ],
)
def test_agent_without_a_usable_certificate_is_denied(peer: Peer, code: Code) -> None:
    with pytest.raises(Denied) as caught:
        admit_agent(peer, consumer="c1", policy=STRICT)
    assert caught.value.code is code
