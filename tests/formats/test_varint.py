import pytest
from construct import ConstructError
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.grammar import UVARINT, VARINT, VARLONG
from tests.loops import for_each

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)


@for_each(
    "value, encoded",
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "80 01"),
        (-65, "81 01"),
        (8191, "fe 7f"),
        (-8192, "ff 7f"),
        (8192, "80 80 01"),
        (2**31 - 1, "fe ff ff ff 0f"),
        (-(2**31), "ff ff ff ff 0f"),
    ],
)
def test_varint_is_zigzag_in_groups_of_seven_bits(value: int, encoded: str) -> None:
    for grammar in (VARINT, VARLONG):
        assert grammar.parse(bytes.fromhex(encoded)) == value
        assert grammar.build(value) == bytes.fromhex(encoded)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(2**63 - 1, "fe ff ff ff ff ff ff ff ff 01"), (-(2**63), "ff ff ff ff ff ff ff ff ff 01")],
)
def test_varlong_takes_ten_bytes_at_most(value: int, encoded: str) -> None:
    assert VARLONG.parse(bytes.fromhex(encoded)) == value
    assert VARLONG.build(value) == bytes.fromhex(encoded)


@pytest.mark.parametrize(
    ("value", "encoded"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "80 01"), (300, "ac 02"), (2**32 - 1, "ff ff ff ff 0f")],
)
def test_uvarint_has_no_sign(value: int, encoded: str) -> None:
    assert UVARINT.parse(bytes.fromhex(encoded)) == value
    assert UVARINT.build(value) == bytes.fromhex(encoded)


@pytest.mark.parametrize(("grammar", "maximum_size"), [(UVARINT, 5), (VARINT, 5), (VARLONG, 10)])
def test_high_bit_in_the_last_byte_is_refused(grammar, maximum_size: int) -> None:
    with pytest.raises(ConstructError, match=f"longer than {maximum_size} bytes"):
        grammar.parse(b"\x80" * maximum_size + b"\x00")


@pytest.mark.parametrize(
    ("grammar", "encoded", "same_as"),
    [
        (UVARINT, "80 80 80 80 70", "00"),  # bits 4-6 of the fifth byte
        (VARINT, "ff ff ff ff 7f", "ff ff ff ff 0f"),
        (VARLONG, "80 80 80 80 80 80 80 80 80 7e", "00"),  # bits 1-6 of the tenth byte
    ],
)
def test_bits_without_room_in_the_last_byte_are_dropped(grammar, encoded: str, same_as: str) -> None:
    assert grammar.parse(bytes.fromhex(encoded)) == grammar.parse(bytes.fromhex(same_as))


@pytest.mark.parametrize("grammar", [UVARINT, VARINT, VARLONG])
def test_overlong_encoding_is_read_and_built_short(grammar) -> None:
    assert grammar.parse(bytes.fromhex("80 00")) == 0
    assert grammar.build(0) == b"\x00"


@pytest.mark.parametrize("grammar", [UVARINT, VARINT, VARLONG])
@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff\xff"])
def test_cut_varint_is_refused(grammar, encoded: bytes) -> None:
    with pytest.raises(ConstructError):
        grammar.parse(encoded)


@pytest.mark.parametrize(
    ("grammar", "value"),
    [(UVARINT, -1), (UVARINT, 2**32), (VARINT, 2**31), (VARINT, -(2**31) - 1), (VARLONG, 2**63), (UVARINT, "1")],
)
def test_number_without_room_is_not_built(grammar, value: object) -> None:
    with pytest.raises(ConstructError):
        grammar.build(value)


@given(INT32)
def test_varint_comes_back(value: int) -> None:
    assert VARINT.parse(VARINT.build(value)) == value


@given(INT64)
def test_varlong_comes_back(value: int) -> None:
    assert VARLONG.parse(VARLONG.build(value)) == value


@given(st.integers(0, 2**32 - 1))
def test_uvarint_comes_back(value: int) -> None:
    assert UVARINT.parse(UVARINT.build(value)) == value
