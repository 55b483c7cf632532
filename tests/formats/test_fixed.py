import subprocess
import sys

import pytest
from construct import Construct, Struct
from hypothesis import given
from hypothesis import strategies as st

from kseg.formats.batch import ATTRIBUTES, BATCH_HEADER
from kseg.formats.codes import LOG_OVERHEAD, MAGIC_POSITION
from kseg.formats.fixed import (
    ABORTED_TRANSACTION_FIELDS,
    BATCH_HEADER_FIELDS,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
    OFFSET_INDEX_ENTRY_FIELDS,
    PRODUCER_ENTRY_FIELDS,
    PRODUCER_SNAPSHOT_HEADER_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    FixedFields,
)
from kseg.formats.index import ABORTED_TRANSACTION, OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kseg.formats.legacy import ATTRIBUTES_V0, ATTRIBUTES_V1, LOG_ENTRY, MESSAGE_V0, MESSAGE_V1
from kseg.formats.snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT


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
    "aborted transaction": (ABORTED_TRANSACTION_FIELDS, ABORTED_TRANSACTION),
    "producer snapshot": (PRODUCER_SNAPSHOT_HEADER_FIELDS, Struct(*up_to(PRODUCER_SNAPSHOT, "entries_count"))),
    "producer entry": (PRODUCER_ENTRY_FIELDS, PRODUCER_ENTRY),
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


@pytest.mark.parametrize("module", ["fixed", "names", "checkpoint", "codes", "positions"])
def test_module_is_imported_without_construct(module: str) -> None:
    code = f"import sys, kseg.formats.{module}; sys.exit('construct' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
