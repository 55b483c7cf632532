"""The twin notes the same marks as the compiled kernel, on arbitrary bytes."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kseg.formats.extent_lists import SIGNATURES
from kseg.kernel import fast, twin

LONGEST_TOPIC, LONGEST_NUMBERS = b"t" * 249, (b"9" * 7, b"9" * 10, b"9" * 19)
LONGEST = b"0\n%b\n%b %b %b\n" % (LONGEST_NUMBERS[0], LONGEST_TOPIC, *LONGEST_NUMBERS[1:])
DIGITS = st.text("0123456789", max_size=20).map(str.encode)
NAMES = st.text("aAzZ09._-/@[`{", max_size=5).map(str.encode) | st.integers(247, 251).map(lambda size: b"t" * size)
TEXTS = st.tuples(st.sampled_from((b"0\n", b"00\n", b"0", b"1\n")), DIGITS, NAMES, DIGITS, DIGITS).map(
    lambda parts: b"%b%b\n%b %b %b\n" % parts
)
CHECKPOINTS = st.tuples(
    st.integers(1, 10**8), NAMES, st.integers(0, 10**10), st.integers(0, 10**19), st.sampled_from(b"\n\r ")
).map(lambda parts: b"0\n%d\n%b %d %d%c" % parts)
CONTENTS = st.lists(st.one_of(TEXTS, CHECKPOINTS, st.binary(max_size=80), st.just(LONGEST)), max_size=8).map(b"".join)


@settings(max_examples=400, deadline=None)
@given(CONTENTS, st.integers(0, 3))
@example(b"0\n1\nt 0 0\n", 1)
@example(b"0\n1\nt 0 0", 1)
@example(b"0\n10\n1\nt 0 0\n", 1)
def test_checkpoints_are_found_equally(content: bytes, most: int) -> None:
    assert fast.find_checkpoints(memoryview(content), most) == twin.find_checkpoints(memoryview(content), most)


def test_checkpoints_have_numbers_and_topics_up_to_their_longest() -> None:
    assert fast.find_checkpoints(memoryview(b"0\n" + LONGEST), 9) == [2]
    for longer in (
        b"9" * 7 + b"\n",
        LONGEST_TOPIC + b" ",
        b" " + LONGEST_NUMBERS[1] + b" ",
        LONGEST_NUMBERS[2] + b"\n",
    ):
        assert fast.find_checkpoints(memoryview(LONGEST.replace(longer, longer[:1] + b"9" + longer[1:])), 9) == []


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(SIGNATURES), st.integers(0, 7), st.integers(0, 1)), max_size=12),
    st.integers(0, 2100),
)
def test_signatures_are_found_equally(
    marks: list[tuple[tuple[object, bytes, int, int, int], int, int]], size: int
) -> None:
    content = bytearray(2100)
    for (_, magic, place, slot, _), number, shift in marks:
        at = place + number * slot + shift
        content[at : at + 2] = magic
    piece = memoryview(bytes(content[:size]))
    assert sorted(fast.find_signatures(piece, SIGNATURES)) == twin.find_signatures(piece, SIGNATURES)
    assert fast.find_signatures(piece, ()) == twin.find_signatures(piece, ()) == []
