"""Streams into frames: sizes add up to the stream's, whatever is in it."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.protocol.messages import Lost, SizedMessage, Splitter, find_request
from tests.protocol.packets import metadata_request


def split(pieces: list[bytes], lost: str | None = None) -> list[SizedMessage | Lost]:
    splitter = Splitter(lambda data, start, _: find_request(data, start), lost=lost)
    found = [item for piece in pieces for item in splitter.feed(piece)]
    return [*found, *splitter.end()]


PARTS = st.lists(
    st.one_of(st.binary(max_size=40), st.integers(0, 99).map(metadata_request), st.just(b"\0\0\0\x20")), max_size=12
)


@settings(max_examples=200, deadline=None)
@given(PARTS, st.integers(1, 60))
def test_messages_and_losses_cover_the_stream(parts: list[bytes], piece: int) -> None:
    stream = b"".join(parts)
    found = split([stream[at : at + piece] for at in range(0, len(stream), piece)])
    position = 0
    for item in found:
        assert item.position == position
        position += item.size
    assert position == len(stream)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 99).map(metadata_request), min_size=1, max_size=6), st.integers(1, 60))
def test_pieces_make_no_difference(frames: list[bytes], piece: int) -> None:
    stream = b"".join(frames)
    found = split([stream[at : at + piece] for at in range(0, len(stream), piece)])
    assert [item.content for item in found if isinstance(item, SizedMessage)] == [frame[4:] for frame in frames]


def test_stream_from_its_middle_begins_with_a_loss() -> None:
    stream = b"rest" + metadata_request(1)
    assert [(type(item), item.size) for item in split([stream], lost="its beginning is missing")] == [
        (Lost, 4),
        (SizedMessage, len(stream) - 4),
    ]


def test_frames_behind_a_size_that_the_stream_does_not_have_are_found() -> None:
    stream = (1 << 20).to_bytes(4, "big") + metadata_request(1) + metadata_request(2)
    found = split([stream])
    assert [type(item) for item in found] == [Lost, SizedMessage, SizedMessage]
    assert found[0] == Lost(0, 4, f"a frame of {(1 << 20) + 4} bytes begins, but only {len(stream)} bytes are left")
