"""Packets byte by byte against the standard, and what a reader does with pieces and with rubbish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors
from maestropy.wire import mqttpackets as packets


def read(data: bytes) -> list[packets.Received]:
    return list(packets.Reader().feed(data))


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        pytest.param(
            packets.connect(packets.Connect(client_id="c", keep_alive_seconds=60, receive_maximum=256)),
            "1011 00044d515454 05 02 003c 03 210100 000163",
            id="connect",
        ),
        pytest.param(
            packets.connect(
                packets.Connect(client_id="", keep_alive_seconds=0, receive_maximum=1, username="u", password="p")
            ),
            "1016 00044d515454 05 c2 0000 03 210001 0000 000175 000170",
            id="connect-with-a-password",
        ),
        pytest.param(
            packets.publish(
                packets.Publish(topic="t", payload=b"x", content_type="j", properties=(("a", "b"),), number=7)
            ),
            "3212 000174 0007 0b 0300016a 26000161000162 78",
            id="publish",
        ),
        pytest.param(
            packets.publish(packets.Publish(topic="t", payload=b"")), "3004 000174 00", id="publish-without-answer"
        ),
        pytest.param(packets.acknowledge(513), "4002 0201", id="acknowledge"),
        pytest.param(packets.subscribe(1, ["a", "b"], qos=1), "820b 0001 00 00016101 00016201", id="subscribe"),
        pytest.param(packets.PING, "c000", id="ping"),
        pytest.param(packets.GOODBYE, "e000", id="goodbye"),
    ],
)
def test_what_is_sent(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("2003 00 00 00", packets.Connected(reason=0), id="connected"),
        pytest.param(
            "200e 00 00 0b 210014 2700080000 13001e",
            packets.Connected(reason=0, receive_maximum=20, maximum_packet_bytes=524288, keep_alive_seconds=30),
            id="connected-with-limits",
        ),
        pytest.param(
            "2008 00 87 05 1f00026e6f", packets.Connected(reason=0x87, explanation="no"), id="connection-refused"
        ),
        pytest.param("4002 0007", packets.Acknowledged(number=7, reason=0), id="acknowledged"),
        pytest.param("4003 0007 10", packets.Acknowledged(number=7, reason=0x10), id="nobody-listens"),
        pytest.param(
            "4009 0007 97 05 1f00026e6f", packets.Acknowledged(number=7, reason=0x97, explanation="no"), id="refused"
        ),
        pytest.param("9005 0001 00 01 87", packets.Subscribed(number=1, reasons=(1, 0x87)), id="subscribed"),
        pytest.param("d000", packets.Pong(), id="pong"),
        pytest.param("e000", packets.Disconnect(reason=0), id="disconnect"),
        pytest.param("e002 8e 00", packets.Disconnect(reason=0x8E), id="taken-over"),
    ],
)
def test_what_arrives(data: str, expected: packets.Received) -> None:
    assert read(bytes.fromhex(data)) == [expected]


@given(
    st.builds(
        packets.Publish,
        topic=st.text(max_size=40),
        payload=st.binary(max_size=600),
        content_type=st.text(max_size=20),
        properties=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=200))).map(tuple),
        number=st.none() | st.integers(1, 65535),
    ),
    st.integers(1, 50),
)
def test_a_message_survives_the_way_in_any_pieces(message: packets.Publish, piece: int) -> None:
    reader = packets.Reader()
    data = packets.publish(message) * 2
    found = [got for at in range(0, len(data), piece) for got in reader.feed(data[at : at + piece])]
    assert found == [message, message]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("0000", id="a-packet-of-no-kind"),
        pytest.param("1000", id="a-packet-of-clients"),
        pytest.param("2000", id="an-empty-answer"),
        pytest.param("30ffffffff01", id="a-length-without-end"),
        pytest.param("3003 000574", id="a-topic-longer-than-its-packet"),
        pytest.param("3402 0000", id="qos-2"),
        pytest.param("3004 0000 0199", id="an-unknown-property"),
        pytest.param("3003 0000 05", id="properties-longer-than-their-packet"),
        pytest.param("3003 0001 ff", id="not-utf-8"),
    ],
)
def test_rubbish_is_named_and_never_crashes(data: str) -> None:
    with pytest.raises(errors.WireError):
        read(bytes.fromhex(data))


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        read(data)
    except errors.WireError:
        pass


def test_what_mqtt_cannot_carry_is_refused() -> None:
    with pytest.raises(errors.Invalid, match="ce-metadata has 65536 bytes"):
        packets.publish(packets.Publish(topic="t", payload=b"", properties=(("ce-metadata", "x" * 65536),)))
