import subprocess
import sys

import pytest
from construct import Construct, Struct
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.batch import ATTRIBUTES, ATTRIBUTES_V0, ATTRIBUTES_V1, BATCH_HEADER, LOG_ENTRY, MESSAGE_V0, MESSAGE_V1
from kseg.formats.codes import LOG_OVERHEAD, MAGIC_POSITION
from kseg.formats.control import CONTROL_RECORD_KEY, END_TXN_MARKER
from kseg.formats.header_fields import ATTRIBUTES as ATTRIBUTE_MASKS
from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    CONTROL_RECORD_KEY_FIELDS,
    END_TXN_MARKER_FIELDS,
    HEADER_NAMES,
    LEAST_SIZES,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
    OFFSET_INDEX_ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_NAMES,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    FixedField,
    FixedFields,
    struct_of,
)
from kseg.formats.indexes import (
    ABORTED_TRANSACTION,
    OFFSET_INDEX_ENTRY,
    PRODUCER_ENTRY,
    PRODUCER_SNAPSHOT,
    TIME_INDEX_ENTRY,
)
from kseg.reading.batch import NEW_HEADER, BatchHeader


def up_to(grammar: Construct, last: str) -> list[Construct]:
    """A grammar's fields up to the one named `last`."""
    names = [field.name for field in grammar.subcons]
    return grammar.subcons[: names.index(last) + 1]


LOG_OVERHEAD_FIELDS = up_to(LOG_ENTRY, "message_size")
PAIRS = {
    "log entry v0": (LOG_ENTRY_HEADER_V0_FIELDS, Struct(*LOG_OVERHEAD_FIELDS, *up_to(MESSAGE_V0, "key_length"))),
    "log entry v1": (LOG_ENTRY_HEADER_V1_FIELDS, Struct(*LOG_OVERHEAD_FIELDS, *up_to(MESSAGE_V1, "key_length"))),
    "batch header": (BATCH_HEADER_FIELDS, BATCH_HEADER),
    "offset index": (OFFSET_INDEX_ENTRY_FIELDS, OFFSET_INDEX_ENTRY),
    "time index": (TIME_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY),
    "aborted transaction": (TRANSACTION_INDEX_ENTRY_FIELDS, ABORTED_TRANSACTION),
    "producer snapshot": (PRODUCER_SNAPSHOT_HEADER_FIELDS, Struct(*up_to(PRODUCER_SNAPSHOT, "entries_count"))),
    "producer entry": (PRODUCER_ENTRY_FIELDS, PRODUCER_ENTRY),
    "control key": (CONTROL_RECORD_KEY_FIELDS, Struct(*up_to(CONTROL_RECORD_KEY, "type"))),
    "marker": (END_TXN_MARKER_FIELDS, Struct(*up_to(END_TXN_MARKER, "coordinator_epoch"))),
}
ATTRIBUTE_GRAMMARS = {"log entry v0": ATTRIBUTES_V0, "log entry v1": ATTRIBUTES_V1, "batch header": ATTRIBUTES}


@pytest.mark.parametrize(("fixed", "grammar"), PAIRS.values(), ids=PAIRS)
def test_fixed_fields_have_the_grammar_s_names_and_size(fixed: FixedFields, grammar: Construct) -> None:
    assert list(fixed.names) == [field.name for field in grammar.subcons]
    assert fixed.struct.size == grammar.sizeof()
    assert len(fixed.struct.unpack(bytes(fixed.struct.size))) == len(fixed.names)


@pytest.mark.parametrize("pair", PAIRS)
@given(content=st.binary(min_size=61, max_size=61))
def test_fixed_fields_have_the_grammar_s_values(pair: str, content: bytes) -> None:
    fixed, grammar = PAIRS[pair]
    values = dict(zip(fixed.names, fixed.struct.unpack_from(content), strict=True))
    parsed = grammar.parse(content)
    if pair in ATTRIBUTE_GRAMMARS:
        bits = ATTRIBUTE_GRAMMARS[pair].build(parsed.attributes)
        parsed.attributes = int.from_bytes(bits, "big", signed=True)
    assert parsed == values


@pytest.mark.parametrize(("fixed", "grammar"), PAIRS.values(), ids=PAIRS)
def test_fixed_fields_stand_where_the_grammar_s_do(fixed: FixedFields, grammar: Construct) -> None:
    sizes = [field.sizeof() for field in grammar.subcons]
    assert [fixed.position(name) for name in fixed.names] == [sum(sizes[:number]) for number in range(len(sizes))]


@pytest.mark.parametrize("pair", ["log entry v0", "log entry v1", "batch header"])
def test_magic_and_size_stand_at_the_same_place_in_all_formats(pair: str) -> None:
    fixed, _ = PAIRS[pair]
    assert fixed.position("magic") == MAGIC_POSITION
    assert fixed.position(fixed.names[1]) + 4 == LOG_OVERHEAD


@pytest.mark.parametrize("magic", [0, 1])
def test_least_entry_is_one_whose_key_and_value_are_null(magic: int) -> None:
    attributes = {"unused": 0, "codec": 0, "timestamp_type": 0}
    message = {"crc": 0, "magic": magic, "attributes": attributes, "timestamp": 0, "key": None, "value": None}
    assert len(LOG_ENTRY.build({"offset": 0, "message": message})) == LEAST_SIZES[magic]


@pytest.mark.parametrize("name", ATTRIBUTE_MASKS)
def test_masks_take_the_bits_of_their_attribute(name: str) -> None:
    fields = {field.name: 0 for field in ATTRIBUTES.subcon.subcons}
    bits = ATTRIBUTES.build({**fields, name: 7 if name == "codec" else 1})
    assert int.from_bytes(bits, "big") == ATTRIBUTE_MASKS[name]


def test_attributes_stand_at_the_same_bits_in_all_formats() -> None:
    places: dict[str, set[tuple[int, int]]] = {}
    for pair in ATTRIBUTE_GRAMMARS:
        for bits, shift, mask in PAIRS[pair][0].bits("attributes"):
            if bits.name != "unused":
                places.setdefault(bits.name, set()).add((shift, mask))
    assert [name for name, each in places.items() if len(each) > 1] == []
    assert set(places) == set(ATTRIBUTE_MASKS)


@given(value=st.integers(-(2**31), 2**31 - 1), before=st.binary(max_size=9))
def test_a_field_reads_what_it_wrote_where_it_stands(value: int, before: bytes) -> None:
    field = FixedField(3, 4, "i")
    content = bytearray(before + bytes(8))
    field.write(content, value, len(before))
    assert field.read(content, len(before)) == value
    assert content[: len(before) + 3] == before + bytes(3)


@pytest.mark.parametrize("fields", [fixed for fixed, _ in PAIRS.values()], ids=PAIRS)
def test_a_field_by_its_name_is_where_the_struct_has_it(fields: FixedFields) -> None:
    content = bytes(range(1, 1 + fields.struct.size))
    assert tuple(fields.field(name).read(content) for name in fields.names) == fields.struct.unpack(content)


@pytest.mark.parametrize(("code", "limits"), [("b", range(-128, 128)), ("I", range(2**32))])
def test_limits_are_the_values_that_fit(code: str, limits: range) -> None:
    field = FixedField(0, struct_of(FixedField(0, 0, code)).size, code)
    assert field.limits == limits
    for value in (limits[0], limits[-1]):
        assert field.read(field.pack(value)) == value
    for value in (limits[0] - 1, limits[-1] + 1):
        with pytest.raises(OverflowError):
            field.pack(value)


def test_a_header_as_a_value_has_the_declared_names() -> None:
    assert BatchHeader._fields == HEADER_NAMES
    assert dict(zip(PRODUCER_NAMES, NEW_HEADER.of_producer(3, 4, 5).producer, strict=True)) == {
        name: getattr(NEW_HEADER.of_producer(3, 4, 5), name) for name in PRODUCER_NAMES
    }


def test_struct_of_passes_over_what_lies_between_its_fields() -> None:
    content = bytes.fromhex("ff 0001 ffff 02 ff")
    assert struct_of(FixedField(1, 2, "h"), FixedField(5, 1, "b")).unpack_from(content) == (1, 2)


@pytest.mark.parametrize("module", ["header_fields", "file_names", "checkpoints", "codes", "varint_bytes"])
def test_module_is_imported_without_construct(module: str) -> None:
    code = f"import sys, kseg.formats.{module}; sys.exit('construct' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
