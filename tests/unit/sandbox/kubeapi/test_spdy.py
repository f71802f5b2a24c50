"""Frames of SPDY/3.1, as kubectl sends them for a port-forward."""

import struct
import zlib

import pytest

from maestropy.sandbox.kubeapi.streams import spdy, targets
from maestropy.sandbox.kubeapi.streams.spdy_dictionary import DICTIONARY

DATA_HEADERS = {"streamtype": "data", "port": "80", "requestid": "0"}
FRAMES: list[spdy.Frame] = [
    spdy.OpenStream(1, {"streamtype": "error", "port": "80", "requestid": "0"}, is_last=True),
    spdy.OpenStream(3, DATA_HEADERS, is_last=False),
    spdy.StreamReply(1),
    spdy.StreamData(3, b"GET / HTTP/1.1\r\n\r\n"),
    spdy.StreamData(3, b"", is_last=True),
    spdy.Ping(7),
    spdy.StreamReset(3, spdy.REFUSED_STREAM),
    spdy.GoAway(),
]


def test_the_dictionary_is_that_of_the_protocol() -> None:
    # Compressed headers name their dictionary by this checksum.
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_frames_are_read_however_they_are_cut(size: int) -> None:
    writer, reader = spdy.SpdyWriter(), spdy.SpdyReader()
    wire = b"".join(writer.write(frame) for frame in FRAMES)
    pieces = (wire[start : start + size] for start in range(0, len(wire), size))
    assert [frame for piece in pieces for frame in reader.feed(piece)] == FRAMES


def test_headers_of_later_frames_need_those_of_earlier_ones() -> None:
    writer, reader = spdy.SpdyWriter(), spdy.SpdyReader()
    first, second = (writer.write(spdy.OpenStream(stream, DATA_HEADERS, is_last=False)) for stream in (1, 3))
    assert len(second) < len(first)
    assert [frame.stream for frame in reader.feed(first + second) if isinstance(frame, spdy.OpenStream)] == [1, 3]


def test_frames_without_meaning_here_are_ignored() -> None:
    settings = struct.pack(">HHI", 0x8003, 4, 12) + bytes(12)
    window_update = struct.pack(">HHIII", 0x8003, 9, 8, 1, 65536)
    assert list(spdy.SpdyReader().feed(settings + window_update)) == []


def test_names_of_headers_are_read_in_lower_case() -> None:
    wire = spdy.SpdyWriter().write(spdy.OpenStream(1, {"StreamType": "data"}, is_last=False))
    [frame] = spdy.SpdyReader().feed(wire)
    assert isinstance(frame, spdy.OpenStream)
    assert frame.headers == {"streamtype": "data"}


@pytest.mark.parametrize(
    ("wire", "problem"),
    [
        pytest.param(struct.pack(">II", 1, (1 << 20) + 1), "at most 1048576", id="large-frame"),
        pytest.param(struct.pack(">HHI", 0x8002, 6, 4) + bytes(4), "version 2, not SPDY/3", id="other-version"),
        pytest.param(struct.pack(">HHI", 0x8003, 6, 2) + bytes(2), "cannot be read", id="short-ping"),
        pytest.param(struct.pack(">HHI", 0x8003, 1, 12) + bytes(12), "cannot be read", id="headers-not-compressed"),
    ],
)
def test_what_breaks_the_protocol_is_rejected(wire: bytes, problem: str) -> None:
    with pytest.raises(spdy.SpdyError, match=problem):
        list(spdy.SpdyReader().feed(wire))


def test_headers_that_grow_beyond_the_limit_are_rejected() -> None:
    wire = spdy.SpdyWriter().write(spdy.OpenStream(1, {"a": "x" * 20_000}, is_last=False))
    assert len(wire) < 1000
    with pytest.raises(spdy.SpdyError, match="more than 16384 bytes"):
        list(spdy.SpdyReader().feed(wire))


def test_a_header_longer_than_its_block_is_rejected() -> None:
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = deflate.compress(struct.pack(">II", 1, 50) + b"short") + deflate.flush(zlib.Z_SYNC_FLUSH)
    wire = struct.pack(">HHI", 0x8003, 1, 10 + len(block)) + struct.pack(">IIBB", 1, 0, 0, 0) + block
    with pytest.raises(spdy.SpdyError, match="longer than its block"):
        list(spdy.SpdyReader().feed(wire))


def pod(annotation: str) -> dict[str, object]:
    return {"metadata": {"name": "web", "annotations": {targets.FORWARD: annotation} if annotation else {}}}


def test_an_annotation_leads_ports_of_a_pod_to_local_ports() -> None:
    written = pod("80=18080, 8443 = 18443,")
    assert [targets.local_port(written, port) for port in (80, 8443)] == [18080, 18443]


@pytest.mark.parametrize(
    ("annotation", "problem"),
    [
        pytest.param("", "nothing listens on port 80 of pod web; annotate the pod", id="none"),
        pytest.param("81=18081", "nothing listens on port 80", id="other-port"),
        pytest.param("80", "write POD_PORT=LOCAL_PORT", id="one-port"),
        pytest.param("80=example.com:80", "write POD_PORT=LOCAL_PORT", id="other-host"),
        pytest.param("80=70000", "write POD_PORT=LOCAL_PORT", id="no-port"),
        pytest.param("x=18080", "write POD_PORT=LOCAL_PORT", id="no-number"),
    ],
)
def test_a_port_that_leads_nowhere_is_explained(annotation: str, problem: str) -> None:
    with pytest.raises(targets.NoTarget, match=problem):
        targets.local_port(pod(annotation), 80)
