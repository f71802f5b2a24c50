"""Limits per peer: failed attempts, open subscriptions, token reviews."""

import contextlib

import pytest

from maestropy.transport.peer_identity import host_of
from maestropy.transport.peer_limits import AttemptLimit, OpenLimit, TooMany
from maestropy.transport.token_attempts import FAILED_AT_ONCE, FAILED_SECONDS, TokenAttempts, digest


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_attempts_come_back_with_time() -> None:
    clock = Clock()
    limit = AttemptLimit(burst=2, seconds=10.0, clock=clock)
    assert [limit.take("a") for _ in range(3)] == [True, True, False]
    assert limit.take("b")
    clock.now += 10
    assert [limit.take("a") for _ in range(2)] == [True, False]


def test_successful_attempt_is_given_back() -> None:
    limit = AttemptLimit(burst=1, seconds=10.0, clock=Clock())
    assert limit.take("a")
    limit.give_back("a")
    assert len(limit) == 0
    assert limit.take("a")


def test_table_of_attempts_is_bounded() -> None:
    limit = AttemptLimit(burst=1, seconds=10.0, clock=Clock(), capacity=100)
    for number in range(1000):
        assert limit.take(f"peer-{number}")
    assert len(limit) == 100
    assert not limit.take("peer-999")


def test_open_subscriptions_are_limited_per_peer_and_in_total() -> None:
    limit = OpenLimit(total=3, per_peer=2)
    with contextlib.ExitStack() as stack:
        for peer in ("a", "a", "b"):
            stack.enter_context(limit.held(peer))
        with pytest.raises(TooMany, match="this client has 2"), limit.held("a"):
            pass
        with pytest.raises(TooMany, match="the server has 3"), limit.held("c"):
            pass
    with limit.held("a"):
        pass


def test_valid_token_is_reviewed_although_its_address_failed_often() -> None:
    clock = Clock()
    attempts = TokenAttempts(clock=clock)
    good = digest("good")
    assert attempts.may_start(good, address="a")
    attempts.accepted(good, address="a")
    failed = [attempts.may_start(digest(f"bad-{number}"), address="a") for number in range(100)]
    assert failed.count(True) == FAILED_AT_ONCE
    assert attempts.may_start(good, address="a")
    attempts.rejected(good)
    assert not attempts.may_start(good, address="a")
    clock.now += FAILED_SECONDS
    assert attempts.may_start(good, address="a")


def test_review_without_result_does_not_count() -> None:
    attempts = TokenAttempts(clock=Clock())
    for number in range(100):
        token = digest(f"token-{number}")
        assert attempts.may_start(token, address="a")
        attempts.unanswered(token, address="a")


@pytest.mark.parametrize(
    ("address", "host"),
    [
        pytest.param("ipv4:10.0.0.1:4711", "10.0.0.1", id="ipv4"),
        pytest.param("ipv6:%5B2001:db8::1%5D:4711", "2001:db8::/64", id="ipv6"),
        pytest.param("ipv6:[2001:db8:0:0:ff::1]:4711", "2001:db8::/64", id="same-network"),
        pytest.param("ipv6:%5B::ffff:10.0.0.1%5D:4711", "10.0.0.1", id="mapped-ipv4"),
        pytest.param("ipv6:%5B::1%5D:4711", "::1", id="loopback"),
        pytest.param("unix:/run/x.sock", "unix:/run/x.sock", id="socket"),
        pytest.param("127.0.0.1", "127.0.0.1", id="bare"),
        pytest.param("", "", id="unknown"),
    ],
)
def test_host_of_an_address(address: str, host: str) -> None:
    assert host_of(address) == host
