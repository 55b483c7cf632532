"""The compiled kernel's fields are those of the grammars, and a build writes them only when they change."""

import re
from pathlib import Path

import pytest
from construct import Construct, Struct

from kseg.formats.batch import ATTRIBUTES, BATCH_HEADER, LOG_ENTRY, MESSAGE_V0, MESSAGE_V1
from kseg.formats.indexes import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from kseg.kernel.declarations import part, write_declarations

TEXT = "\n".join(part())
NUMBERS = {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+)$", TEXT, re.MULTILINE)}
READERS = set(re.findall(r"^cdef inline \w+ (\w+)\(", TEXT, re.MULTILINE))
GRAMMARS = {
    "ENTRY_V0": Struct(*LOG_ENTRY.subcons[:2], *MESSAGE_V0.subcons[:4]),
    "ENTRY_V1": Struct(*LOG_ENTRY.subcons[:2], *MESSAGE_V1.subcons[:5]),
    "BATCH": BATCH_HEADER,
    "OFFSET_ENTRY": OFFSET_INDEX_ENTRY,
    "TIME_ENTRY": TIME_INDEX_ENTRY,
}


@pytest.mark.parametrize(("prefix", "grammar"), GRAMMARS.items(), ids=GRAMMARS)
def test_each_field_of_a_grammar_has_its_position_and_its_reader(prefix: str, grammar: Construct) -> None:
    position = 0
    for field in grammar.subcons:
        name = f"{prefix}_{field.name}"
        assert (NUMBERS[f"{name.upper()}_AT"], name.lower() in READERS) == (position, True)
        position += field.sizeof()


def test_masks_are_those_of_the_grammar() -> None:
    fields = {field.name: 0 for field in ATTRIBUTES.subcon.subcons}
    for name in fields.keys() - {"unused"}:
        bits = ATTRIBUTES.build({**fields, name: 7 if name == "codec" else 1})
        short = re.sub("^(is|has)_", "", name).upper()
        assert NUMBERS[f"{short}_MASK"] == int.from_bytes(bits, "big")
        assert NUMBERS[f"{short}_MASK"] >> NUMBERS[f"{short}_SHIFT"] & 1


def test_a_file_that_is_current_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "declarations.pxi"
    path.write_text("old\n", encoding="utf-8")
    write_declarations(path)
    assert path.read_text(encoding="utf-8") == TEXT + "\n"
    path.chmod(0o400)
    before = path.stat().st_mtime_ns
    write_declarations(path)
    assert path.stat().st_mtime_ns == before
