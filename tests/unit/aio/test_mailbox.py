"""Mailbox: bounded, newest message per key, in order; a full one overflows, a closed one is still drained."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maestropy.aio import mailbox


def box(*, items: int = 4, size: int = 100) -> mailbox.Mailbox:
    return mailbox.Mailbox(max_items=items, max_bytes=size)


class Closed(Exception):
    pass


async def test_newer_message_of_a_key_replaces_the_older_one() -> None:
    queue = box()
    for key, message in (("a", b"a1"), ("b", b"b1"), ("a", b"a2")):
        queue.put(key, message)
    assert len(queue) == 2
    assert await queue.take() == [b"b1", b"a2"]
    assert len(queue) == 0


async def test_waiting_reader_is_woken_by_a_message() -> None:
    queue = box()
    reader = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    assert not reader.done()
    queue.put("a", b"1")
    assert await reader == [b"1"]


async def test_discarded_message_is_not_read() -> None:
    queue = box(size=10)
    queue.put("a", b"12345678")
    queue.discard("a")
    queue.discard("a")
    queue.put("b", b"12345678")
    assert await queue.take() == [b"12345678"]


@pytest.mark.parametrize(
    ("items", "size", "messages"),
    [
        pytest.param(2, 100, [b"1", b"2", b"3"], id="too-many-items"),
        pytest.param(9, 10, [b"12345", b"67890", b"x"], id="too-many-bytes"),
    ],
)
def test_full_mailbox_raises_overflow(items: int, size: int, messages: list[bytes]) -> None:
    queue = box(items=items, size=size)
    for number, message in enumerate(messages[:-1]):
        queue.put(str(number), message)
    with pytest.raises(mailbox.Overflow):
        queue.put("last", messages[-1])
    queue.put("0", messages[0])  # a replacement needs no additional room


def test_empty_mailbox_accepts_a_message_of_any_size() -> None:
    queue = box(size=10)
    queue.put("a", b"x" * 1000)
    assert not queue.has_room
    with pytest.raises(mailbox.Overflow):
        queue.put("b", b"x")


async def test_has_room_until_half_full_and_again_after_reading() -> None:
    queue = box(items=4)
    await asyncio.wait_for(queue.wait_for_room(), 1)
    for key in "abc":
        assert queue.has_room
        queue.put(key, b"x")
    assert not queue.has_room
    waiting = asyncio.ensure_future(queue.wait_for_room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await queue.take()
    await asyncio.wait_for(waiting, 1)
    assert queue.has_room


async def test_close_is_raised_after_queued_messages_and_wakes_waiting_writers() -> None:
    queue = box(items=2)
    queue.put("a", b"1")
    queue.put("b", b"2")
    waiting = asyncio.ensure_future(queue.wait_for_room())
    await asyncio.sleep(0)
    queue.close(Closed("first"))
    queue.close(Closed("second"))
    assert queue.is_closed
    queue.put("c", b"3")
    await asyncio.wait_for(waiting, 1)
    assert await queue.take() == [b"1", b"2"]
    with pytest.raises(Closed, match="first"):
        await queue.take()


async def test_waiting_reader_gets_the_close_reason() -> None:
    queue = box()
    reader = asyncio.ensure_future(queue.take())
    await asyncio.sleep(0)
    queue.close(Closed())
    with pytest.raises(Closed):
        await reader


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abcdef"), st.binary(max_size=30)),
        st.tuples(st.just("discard"), st.sampled_from("abcdef"), st.just(b"")),
        st.tuples(st.just("take"), st.just(""), st.just(b"")),
    )
)


@given(steps)
async def test_memory_is_bounded_and_no_newest_message_is_lost(script: list[tuple[str, str, bytes]]) -> None:
    queue = box(items=4, size=64)
    model: dict[str, bytes] = {}
    for step, key, message in script:
        if step == "put":
            model.pop(key, None)
            try:
                queue.put(key, message)
            except mailbox.Overflow:
                continue
            model[key] = message
        elif step == "discard":
            queue.discard(key)
            model.pop(key, None)
        elif model:
            assert await queue.take() == list(model.values())
            model.clear()
        assert len(queue) == len(model) <= 4
        assert sum(map(len, model.values())) <= 64
