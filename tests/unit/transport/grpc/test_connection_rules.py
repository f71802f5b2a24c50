"""Which connections without an authenticated call are closed."""

from maestropy.transport.grpc import connection_rules
from maestropy.transport.grpc.connection_rules import Connection, MemoryGrowth, PendingLimits

LIMITS = PendingLimits(
    connections=10,
    per_address=4,
    seconds=60.0,
    received_bytes=1000,
    received_bytes_while_growing=100,
    growth_bytes=5000,
    bytes_of_a_client=1000,
    total_bytes_while_growing=60,
)


def connection(number: int, **changes: object) -> Connection:
    fields = {"file_descriptor": number, "local_port": 8090, "host": f"10.0.0.{number}", "port": 4711, "since": number}
    return Connection(**{**fields, **changes})  # type: ignore[arg-type]


def closed(*connections: Connection, now: float = 10.0, growth: int = 0) -> list[int]:
    excess = connection_rules.closed(connections, LIMITS, now=now, grown_since=lambda _: growth)
    return [connection.file_descriptor for connection, _ in excess]


def test_few_young_connections_stay() -> None:
    assert closed(*(connection(number) for number in range(8))) == []


def test_authenticated_connections_stay() -> None:
    everything = {"is_authenticated": True, "received_bytes": 10**9, "host": "10.0.0.1"}
    assert closed(*(connection(number, **everything) for number in range(20)), now=10**6) == []


def test_old_and_busy_connections_are_closed() -> None:
    assert closed(connection(1), connection(2, received_bytes=1001), connection(30), now=80.0) == [1, 2]


def test_less_is_accepted_while_memory_grows() -> None:
    busy = [connection(1, received_bytes=101), connection(2, received_bytes=50)]
    assert closed(*busy, growth=5000) == []
    assert closed(*busy, growth=5001) == [1]
    assert closed(connection(1, received_bytes=10**9, is_authenticated=True), growth=10**9) == []


def test_those_that_received_most_are_closed_while_memory_grows() -> None:
    busy = [connection(number, received_bytes=10 * number) for number in (1, 4, 2, 3, 9)]
    assert closed(*busy, growth=5000) == []
    assert closed(*busy, growth=5001) == [9, 4]
    late = connection(0, received_bytes=99, is_authenticated=True, since=-5)
    assert closed(late, *busy, growth=5001) == [9, 4]


def test_growth_before_a_connection_is_not_its_own() -> None:
    growth = MemoryGrowth()
    for now, size in ((0.0, 1000), (3.0, 9000), (8.0, 9500), (9.0, 15_000)):
        growth.measure(size, now=now)
    early, late = connection(1, since=2.0, received_bytes=101), connection(2, since=8.5, received_bytes=101)
    at_the_end = connection(3, since=9.5, received_bytes=101)
    excess = connection_rules.closed([early, late, at_the_end], LIMITS, now=10.0, grown_since=growth.since())
    assert [connection.file_descriptor for connection, _ in excess] == [1, 2]


def test_clients_that_return_explain_growth() -> None:
    waiting = connection(1, since=4.0, received_bytes=101)
    fleet = [connection(number, is_authenticated=True, since=5.0) for number in range(10, 15)]
    assert closed(waiting, *fleet, growth=10_000) == []
    assert closed(waiting, *fleet, growth=10_001) == [1]
    earlier = [connection(number, is_authenticated=True, since=1.0) for number in range(10, 15)]
    assert closed(waiting, *earlier, growth=5001) == [1]


def test_memory_growth_is_known_since_any_moment() -> None:
    growth = MemoryGrowth()
    assert growth.since()(0.0) == 0
    for now, size in ((0.0, 50), (30.0, 90), (40.0, 70), (50.0, 75)):
        growth.measure(size, now=now)
    assert [growth.since()(moment) for moment in (-10.0, 0.0, 10.0, 35.0, 45.0, 50.0, 70.0)] == [25, 25, 5, 5, 0, 0, 0]


def test_memory_growth_is_that_of_the_last_minute() -> None:
    growth = MemoryGrowth()
    sizes = [(0, 50), (30, 90), (40, 70), (60, 75), (61, 75), (99, 80), (101, 85)]
    assert [growth.measure(size, now=now) for now, size in sizes] == [0, 40, 20, 25, 5, 10, 10]


def test_oldest_connections_of_one_address_are_closed() -> None:
    assert closed(*(connection(number, host="10.0.0.1") for number in (5, 3, 4, 1, 2, 6))) == [1, 2]


def test_oldest_connections_are_closed_before_a_port_is_full() -> None:
    authenticated = connection(0, is_authenticated=True)
    assert closed(authenticated, *(connection(number) for number in range(1, 9))) == [1]
    other_port = [connection(number, local_port=8091) for number in range(20, 25)]
    assert closed(*(connection(number) for number in range(8)), *other_port) == []
