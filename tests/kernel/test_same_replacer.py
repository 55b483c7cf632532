"""Both kernels replace a content like kseg/redaction.py."""

from hypothesis import given
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import ReplaceContents
from kseg.redaction import PARTS, SHORT, Redaction
from tests.kernel.made import RECORDS, Record, damage_contents

WORDS = "ABCabc019_-"
PRINTABLE = WORDS + ' {}":,.~'
BEYOND = "äöß\t\n\r日本語😀\u0301\x80\xa0\u200b\ue000\U000e0100\U000e01ef\U000e01f0\U00033fff\U00034000\ud7ff\x7f\x00"
SIZES = (0, 1, 2, 3, 7, 8, 9, SHORT - 1, SHORT, SHORT + 1, 64, 103, 104, 105, 136, 137, 272, 1000)
"""Sizes around the limit of permutation, and around the blocks of the hashes."""
CONTENTS = st.one_of(
    st.none(),
    st.binary(max_size=300),
    *(st.text(alphabet, max_size=40).map(str.encode) for alphabet in (WORDS, PRINTABLE, PRINTABLE + BEYOND, BEYOND)),
    *(st.binary(min_size=size, max_size=size) for size in SIZES),
)


def replacers(key: str, *, keeps_keys: bool = False) -> list[ReplaceContents]:
    redaction = Redaction.of(PARTS, key)
    assert redaction is not None
    redactor = redaction.redactor()
    return [kernel.Replacer(redactor, keeps_keys=keeps_keys) for kernel in (fast, twin)]


FAST, TWIN = replacers("key")


@given(CONTENTS, CONTENTS)
def test_contents_become_the_same(key: bytes | None, value: bytes | None) -> None:
    expected = TWIN(key, value)
    assert FAST(key, value) == expected
    assert FAST(key, value) == expected  # from its cache


@given(st.text(min_size=1, max_size=100), CONTENTS)
def test_each_key_gives_the_same(secret: str, content: bytes | None) -> None:
    one, other = replacers(secret.encode("utf-8", "replace").decode())
    assert one(content, content) == other(content, content)


def test_single_bytes_and_pairs_become_the_same() -> None:
    contents = [bytes((byte,)) for byte in range(256)] + [bytes((byte, 200)) for byte in range(256)]
    assert [FAST(content, None) for content in contents] == [TWIN(content, None) for content in contents]


def test_contents_of_all_sizes_become_the_same() -> None:
    for size in SIZES:
        for sign in ("a", "{", "ä", "\t", "日", "\x00"):
            content = (sign * size).encode()[:size]
            assert FAST(None, content) == TWIN(None, content), (size, sign)


def test_content_itself_stays_as_it_is() -> None:
    for content in (b"a", b"ab", b"\xff" * 20):
        copy = bytes(bytearray(content))
        FAST(content, content)
        assert content == copy


def test_keys_stay_where_that_is_wanted() -> None:
    for replacer in replacers("key", keeps_keys=True):
        key, value = replacer(b"trace", b"4711-4711")
        assert key == b"trace"
        assert value == TWIN(None, b"4711-4711")[1]


@given(damage_contents(st.lists(RECORDS.map(Record.encode), max_size=5).map(b"".join)), st.integers(-1, 6))
def test_records_become_the_same(content: bytes, count: int) -> None:
    found = []
    for kernel, replacer in ((fast, FAST), (twin, TWIN)):
        changed = bytearray(content)
        kernel.replace_contents(changed, 0, len(changed), count, replacer, replacer)
        found.append(bytes(changed))
    assert found[0] == found[1]
