"""MQTT packets equal the specification byte by byte; split and invalid packets are handled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.wire import errors
from maestropy.wire import mqtt_packets as packets


def read(data: bytes) -> list[packets.ReceivedPacket]:
    return list(packets.PacketReader().feed(data))


@pytest.mark.parametrize(
    ("packet", "expected"),
    [
        pytest.param(
            packets.connect(packets.ConnectPacket(client_id="c", keep_alive_seconds=60, receive_maximum=256)),
            "1011 00044d515454 05 02 003c 03 210100 000163",
            id="connect",
        ),
        pytest.param(
            packets.connect(
                packets.ConnectPacket(client_id="", keep_alive_seconds=0, receive_maximum=1, username="u", password="p")
            ),
            "1016 00044d515454 05 c2 0000 03 210001 0000 000175 000170",
            id="connect-with-password",
        ),
        pytest.param(
            packets.publish(
                packets.PublishPacket(topic="t", payload=b"x", content_type="j", properties=(("a", "b"),), packet_id=7)
            ),
            "3212 000174 0007 0b 0300016a 26000161000162 78",
            id="publish",
        ),
        pytest.param(
            packets.publish(packets.PublishPacket(topic="t", payload=b"")),
            "3004 000174 00",
            id="publish-qos-0",
        ),
        pytest.param(packets.acknowledge(513), "4002 0201", id="puback"),
        pytest.param(packets.subscribe(1, ["a", "b"], qos=1), "820b 0001 00 00016101 00016201", id="subscribe"),
        pytest.param(packets.PINGREQ, "c000", id="pingreq"),
        pytest.param(packets.DISCONNECT, "e000", id="disconnect"),
    ],
)
def test_sent_packet_bytes(packet: bytes, expected: str) -> None:
    assert packet == bytes.fromhex(expected)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("2003 00 00 00", packets.ConnackPacket(reason=0), id="connack"),
        pytest.param(
            "200e 00 00 0b 210014 2700080000 13001e",
            packets.ConnackPacket(reason=0, receive_maximum=20, maximum_packet_bytes=524288, keep_alive_seconds=30),
            id="connack-with-limits",
        ),
        pytest.param(
            "2008 00 87 05 1f00026e6f", packets.ConnackPacket(reason=0x87, reason_string="no"), id="connack-with-error"
        ),
        pytest.param("4002 0007", packets.PubackPacket(packet_id=7, reason=0), id="puback"),
        pytest.param("4003 0007 10", packets.PubackPacket(packet_id=7, reason=0x10), id="puback-no-subscribers"),
        pytest.param(
            "4009 0007 97 05 1f00026e6f",
            packets.PubackPacket(packet_id=7, reason=0x97, reason_string="no"),
            id="puback-with-error",
        ),
        pytest.param("9005 0001 00 01 87", packets.SubackPacket(packet_id=1, reasons=(1, 0x87)), id="suback"),
        pytest.param("d000", packets.PingrespPacket(), id="pingresp"),
        pytest.param("e000", packets.DisconnectPacket(reason=0), id="disconnect"),
        pytest.param("e002 8e 00", packets.DisconnectPacket(reason=0x8E), id="disconnect-session-taken-over"),
    ],
)
def test_received_packet_is_decoded(data: str, expected: packets.ReceivedPacket) -> None:
    assert read(bytes.fromhex(data)) == [expected]


@given(
    st.builds(
        packets.PublishPacket,
        topic=st.text(max_size=40),
        payload=st.binary(max_size=600),
        content_type=st.text(max_size=20),
        properties=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=200))).map(tuple),
        packet_id=st.none() | st.integers(1, 65535),
    ),
    st.integers(1, 50),
)
def test_message_is_decoded_from_chunks_of_any_size(message: packets.PublishPacket, chunk: int) -> None:
    reader = packets.PacketReader()
    data = packets.publish(message) * 2
    decoded = [packet for at in range(0, len(data), chunk) for packet in reader.feed(data[at : at + chunk])]
    assert decoded == [message, message]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param("0000", id="unknown-packet-type"),
        pytest.param("1000", id="packet-type-of-clients"),
        pytest.param("2000", id="empty-connack"),
        pytest.param("30ffffffff01", id="endless-length"),
        pytest.param("3003 000574", id="topic-longer-than-packet"),
        pytest.param("3402 0000", id="qos-2"),
        pytest.param("3004 0000 0199", id="unknown-property"),
        pytest.param("3003 0000 05", id="properties-longer-than-packet"),
        pytest.param("3003 0001 ff", id="not-utf-8"),
    ],
)
def test_invalid_packet_is_rejected(data: str) -> None:
    with pytest.raises(errors.WireError):
        read(bytes.fromhex(data))


@given(st.binary(max_size=200))
def test_any_bytes_raise_only_wire_errors(data: bytes) -> None:
    try:
        read(data)
    except errors.WireError:
        pass


def test_text_that_mqtt_cannot_carry_is_rejected() -> None:
    with pytest.raises(errors.InvalidContent, match="ce-metadata has 65536 bytes"):
        packets.publish(packets.PublishPacket(topic="t", payload=b"", properties=(("ce-metadata", "x" * 65536),)))
