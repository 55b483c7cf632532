"""Redaction: lengths, nulls, joins, printable text, keys."""

from hashlib import blake2b, scrypt
from itertools import product
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.redaction import SHORT, Redaction, Redactor


def redactor(key: str = "key") -> Redactor:
    redaction = Redaction.of(("keys",), key)
    assert redaction is not None
    return redaction.redactor()


def is_text(content: bytes) -> bool:
    try:
        return all(character.isprintable() or character in "\t\n\r" for character in content.decode())
    except UnicodeDecodeError:
        return False


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(content=st.one_of(st.binary(), st.text().map(_utf8)))
def test_lengths_and_kinds_stay(content: bytes) -> None:
    replaced = redactor().replace_bytes(content) if content else b""
    assert len(replaced) == len(content)
    assert is_text(replaced) == is_text(content)


SHORT_TEXTS = st.text(st.sampled_from("ab -é\u3042😀\n\t\x9b"), max_size=4).map(str.encode)


@given(contents=st.sets(st.one_of(st.binary(max_size=3), SHORT_TEXTS, st.text(max_size=4).map(_utf8)), max_size=50))
def test_what_differs_differs(contents: set[bytes]) -> None:
    assert len({redactor().replace(content) for content in contents}) == len(contents)


@pytest.mark.parametrize(
    "contents", [[bytes([n]) for n in range(256)], [bytes(pair) for pair in product(range(256), repeat=2)]]
)
def test_short_contents_are_permuted(contents: list[bytes]) -> None:
    redact = redactor()
    replaced = [redact.replace_bytes(content) for content in contents]
    assert sorted(replaced) == sorted(contents)
    assert sum(map(bytes.__eq__, replaced, contents)) < len(contents) // 8


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_printable_character_has_its_own(size: int) -> None:
    codes = {2: range(0x80, 0x800), 3: range(0x800, 0x10000, 3), 4: range(0x10000, 0x110000, 7)}[size]
    texts = [chr(code).encode() for code in codes if chr(code).isprintable()]
    replaced = [redactor().replace_bytes(text) for text in texts]
    assert len(set(replaced)) == len(texts) > 1000
    assert all(len(text) == size and text.decode().isprintable() for text in replaced)
    assert sum(map(bytes.__eq__, replaced, texts)) < 20


@pytest.mark.parametrize("signs", ["\n" * 40, "\r\n\t" * 9, "\n"])
def test_line_ends_are_no_room_to_differ_in(signs: str) -> None:
    texts = [signs + letter + last for letter in ascii_letters + "äöü日本😀" for last in ("", "x", "\nx")]
    assert len({redactor().replace_bytes(text.encode()) for text in texts}) == len(texts)


def test_texts_of_up_to_short_bytes_are_permuted_and_longer_ones_hashed() -> None:
    texts = {text[:length].encode() for text in ("ä" * 9, "日本語" * 2, "😀" * 5, "äa" * 6) for length in range(1, 10)}
    replaced = {redactor().replace_bytes(text) for text in texts}
    assert len(replaced) == len(texts)
    assert not replaced & texts


@pytest.mark.parametrize("length", [1, 2, 9, SHORT, SHORT + 1, 1000])
def test_the_key_decides(length: int) -> None:
    content = b"customer-7" * 100
    assert redactor("one").replace(content[:length]) == redactor("one").replace(content[:length])
    if length > 1:
        assert redactor("one").replace(content[:length]) != redactor("two").replace(content[:length])
        assert content[:length] not in (redactor("one").replace(content[:length]) or b"")


def test_words_stay_words_and_lines_stay_lines() -> None:
    redact = redactor()
    assert (redact.replace_bytes(b"customer-7").replace(b"-", b"x").replace(b"_", b"x")).isalnum()
    replaced = redact.replace_bytes("Zürich\n日本語\t😀".encode()).decode()
    assert [len(character.encode()) for character in replaced] == [1, 2, 1, 1, 1, 1, 1, 3, 3, 3, 1, 4]
    assert (replaced[6], replaced[10]) == ("\n", "\t")
    assert replaced.translate(str.maketrans("", "", "\n\t")).isprintable()


def test_null_and_empty_stay() -> None:
    assert (redactor().replace(None), redactor().replace(b"")) == (None, b"")


def test_a_key_that_is_not_given_is_another_each_time() -> None:
    one, other = Redaction.of(("keys",)), Redaction.of(("keys",))
    assert one is not None
    assert one != other
    assert one.key.hex() not in repr(one)


def test_the_fingerprint_is_no_quick_hash_of_the_key() -> None:
    """A guess costs as much as scrypt with these parameters."""
    one, same = Redaction.of(("keys",), "tiger"), Redaction.of(("keys",), "tiger")
    assert one is not None
    assert same is not None
    secret = blake2b(b"tiger", digest_size=32, person=b"kseg redaction").digest()
    slow = scrypt(secret, salt=b"kseg fingerprint", n=1 << 16, r=8, p=2, maxmem=1 << 27, dklen=16)
    assert one.fingerprint == slow.hex()
    assert one == same
    assert one == Redaction(("keys",), slow.hex(), b"")


def test_nothing_is_redacted_unasked() -> None:
    assert Redaction.of(()) is None
