"""Where fields stand, from the construct grammars: kseg/formats/fixed.py, and kernel/fast/positions.pxi in Cython.

Both are for code that reads bytes without construct. kernel/fast/contract.pxi gives the compiled kernel the numbers of
kernel/contract.py and kernel/program.py.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from construct import BitsInteger, FormatField, Renamed

from kseg.formats import batch, control, legacy, snapshot
from kseg.formats.catalogue import FORMATS
from kseg.formats.names import FileKind
from kseg.kernel import contract, fold_contract, program, statistics_contract

MADE = "Made by tools/generate.py from the grammars: edit those."
SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
"""Codes of struct for attributes, whose bits the grammar names one by one."""
READ_ALONE = {
    "ENTRY_V0": ("offset", "message_size", "crc", "magic", "attributes", "key_length"),
    "ENTRY_V1": ("timestamp", "key_length"),
    "BATCH": ("base_offset", "length", "magic", "crc", "attributes", "records_count"),
    "CONTROL_KEY": ("version", "type"),
    "MARKER": ("version", "coordinator_epoch"),
    "SNAPSHOT": ("crc",),
}
"""Fields that Python reads one by one, by what their constants begin with; others only with their structure."""
C_TYPES = {"b": "int8_t", "h": "int16_t", "i": "int32_t", "I": "uint32_t", "q": "int64_t"}
BITS = {0: legacy.ATTRIBUTES_V0, 1: legacy.ATTRIBUTES_V1, 2: batch.ATTRIBUTES}
"""Magic to the grammar of the attributes."""


class Field(NamedTuple):
    """A field of a structure: its name, the bytes before it, its code for struct, its bytes, its meaning."""

    name: str
    position: int
    code: str
    size: int
    meaning: str


class Structure(NamedTuple):
    """A structure, or the beginning of one up to a field from which on positions differ."""

    name: str
    prefix: str
    about: str
    fields: list[Field]
    is_read_by_the_kernel: bool

    @property
    def size(self) -> int:
        """Bytes of all fields."""
        return self.fields[-1].position + self.fields[-1].size


def fixed_module() -> str:
    """The text of kseg/formats/fixed.py, formatted as the sources are."""
    ruff = [str(Path(sys.executable).with_name("ruff")), "format", "--stdin-filename", "fixed.py", "-"]
    text = "\n".join(module())
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout


FOLDED_ENTRIES = {FileKind.OFFSET_INDEX: "OFFSET_ENTRY", FileKind.TIME_INDEX: "TIME_ENTRY"}
"""Index entries that the compiled kernel compares with batches, and what their fields' names begin with there."""


def kernel_positions() -> str:
    """The text of kseg/kernel/fast/positions.pxi."""
    return "\n".join(part()) + "\n"


def kernel_contract() -> str:
    """The text of kseg/kernel/fast/contract.pxi."""
    return "\n".join(numbers()) + "\n"


def structures() -> list[Structure]:
    """All structures whose fields have fixed positions."""
    overhead = up_to(legacy.LOG_ENTRY, "message_size")
    entry_v0 = [*overhead, *up_to(legacy.MESSAGE_V0, "key_length")]
    entry_v1 = [*overhead, *up_to(legacy.MESSAGE_V1, "key_length")]
    snapshot_header = up_to(snapshot.PRODUCER_SNAPSHOT, "entries_count")
    return [
        structure("LOG_ENTRY_HEADER_V0", "ENTRY_V0", "A v0 log entry up to the key.", entry_v0, True),
        structure("LOG_ENTRY_HEADER_V1", "ENTRY_V1", "A v1 log entry up to the key.", entry_v1, True),
        structure("BATCH_HEADER", "BATCH", "A v2 batch up to its records.", batch.BATCH_HEADER.subcons, True),
        structure(
            "CONTROL_RECORD_KEY",
            "CONTROL_KEY",
            "The key of a control record.",
            up_to(control.CONTROL_RECORD_KEY, "type"),
            True,
        ),
        structure(
            "END_TXN_MARKER",
            "MARKER",
            "The value of a control record that ends a transaction.",
            up_to(control.END_TXN_MARKER, "coordinator_epoch"),
            True,
        ),
        *entries().values(),
        structure("PRODUCER_SNAPSHOT_HEADER", "SNAPSHOT", "A .snapshot up to its entries.", snapshot_header),
        structure("PRODUCER_ENTRY", "", "A producer of a .snapshot.", snapshot.PRODUCER_ENTRY.subcons),
    ]


def entries() -> dict[FileKind, Structure]:
    """The entries of files that hold nothing else."""
    return {
        made_of.kind: structure(
            f"{made_of.kind.name}_ENTRY",
            FOLDED_ENTRIES.get(made_of.kind, ""),
            f"{made_of.title}.",
            made_of.grammar.subcons,
            made_of.kind in FOLDED_ENTRIES,
        )
        for made_of in FORMATS.values()
        if made_of.kind is not None
    }


def structure(
    name: str, prefix: str, about: str, grammars: list[Any], is_read_by_the_kernel: bool = False
) -> Structure:
    """A structure of these grammars. Without a prefix its fields get no names in the kernel either."""
    fields, position = [], 0
    for grammar in grammars:
        size = grammar.sizeof()
        fields.append(Field(grammar.name, position, code_of(grammar), size, str(grammar.docs)))
        position += size
    return Structure(name, prefix, about, fields, is_read_by_the_kernel)


def up_to(grammar: Any, last: str) -> list[Any]:
    """A grammar's fields up to the one named `last`."""
    names = [field.name for field in grammar.subcons]
    return list(grammar.subcons[: names.index(last) + 1])


def code_of(grammar: Any) -> str:
    """The code that struct has for a field."""
    inner = grammar
    while not isinstance(inner, FormatField):
        if inner is None or (grammar.sizeof() in SIGNED and is_attributes(inner)):
            return SIGNED[grammar.sizeof()]
        inner = inner.subcon
    order, code = inner.fmtstr
    assert order == ">", "Kafka's numbers are big-endian"
    return str(code).replace("l", "i").replace("L", "I")


def is_attributes(grammar: Any) -> bool:
    """Whether a grammar is one of those that name bits."""
    return any(grammar is bits for bits in BITS.values())


def attribute_bits() -> dict[str, tuple[int, int]]:
    """Each attribute's lowest bit and mask; what a format has of them stands at the same bits in all."""
    found: dict[str, tuple[int, int]] = {}
    for bits in BITS.values():
        shift = 0
        for field in reversed(bits.subcon.subcons):
            width = bits_of(field)
            if field.name != "unused":
                place = shift, ((1 << width) - 1) << shift
                assert found.setdefault(field.name, place) == place
            shift += width
    return found


def known_attributes() -> dict[int, int]:
    """Magic to the bits of the attributes that have a meaning."""
    masks = {name: mask for name, (_, mask) in attribute_bits().items()}
    return {magic: sum(masks.get(field.name, 0) for field in bits.subcon.subcons) for magic, bits in BITS.items()}


def bits_of(field: Any) -> int:
    """Bits of an attribute."""
    inner = field
    while isinstance(inner, Renamed):
        inner = inner.subcon
    return int(inner.length) if isinstance(inner, BitsInteger) else 1


def least_sizes() -> dict[int, int]:
    """Magic to the bytes of the least batch or entry: without records; with null for key and value."""
    sizes = {entry.prefix: entry.size for entry in structures()}
    value_length = legacy.MESSAGE_V0.subcons[-3].sizeof()
    return {0: sizes["ENTRY_V0"] + value_length, 1: sizes["ENTRY_V1"] + value_length, 2: sizes["BATCH"]}


def magic_position() -> int:
    """Where the magic stands, whatever it is."""
    (position,) = {field.position for found in structures() for field in found.fields if field.name == "magic"}
    return position


def module() -> Iterator[str]:
    """The Python module's lines."""
    yield f'"""Fields at fixed positions, without construct. {MADE}"""'
    yield "\nfrom struct import Struct\n"
    yield "from kseg.formats.fixed_fields import FixedField, FixedFields"
    yield "from kseg.formats.names import FileKind\n"
    for made_of in structures():
        codes = "".join(field.code for field in made_of.fields)
        names = ", ".join(f'"{field.name}"' for field in made_of.fields)
        yield f'{made_of.name}_FIELDS = FixedFields(Struct(">{codes}"), ({names}))'
        yield f'"""{made_of.about} {made_of.size} bytes."""'
        for field in made_of.fields:
            if field.name not in READ_ALONE.get(made_of.prefix, ()):
                continue
            yield f'{constant(made_of, field)} = FixedField({field.position}, {field.size}, "{field.code}")'
            yield f'"""{capitalized(field.meaning)}."""'
    yield "ENTRY_FIELDS = {"
    yield from (f"FileKind.{kind.name}: {made_of.name}_FIELDS," for kind, made_of in entries().items())
    yield '}\n"""Fields of entries, by the kind of file that holds nothing else."""\n'
    yield "ATTRIBUTES = {"
    for name, (_, mask) in attribute_bits().items():
        yield f'"{name}": {mask:#04x},'
    yield '}\n"""Masks of the attributes\' bits: what a format has of them stands at the same bits in all."""\n'
    yield f"KNOWN_ATTRIBUTES = {{{', '.join(f'{magic}: {bits:#04x}' for magic, bits in known_attributes().items())}}}"
    yield '"""Magic to the bits that have a meaning; all others are 0."""'
    yield f"LEAST_SIZES = {least_sizes()}"
    yield '"""Magic to the bytes of the least batch or entry: without records; with null for key and value."""'


def part() -> Iterator[str]:
    """The lines of the kernel's part."""
    read = [made_of for made_of in structures() if made_of.is_read_by_the_kernel]
    yield f"# Where fields stand, and how they are read. {MADE}"
    yield "# unsafe: callers have a structure's bytes from `at` on, up to the field's end at least.\n"
    yield "cdef enum:"
    yield f"    LOG_OVERHEAD = {legacy.LOG_OVERHEAD}"
    yield f"    MAGIC_AT = {magic_position()}"
    for made_of in read:
        yield f"    {made_of.name}_SIZE = {made_of.size}"
        yield from (f"    {constant(made_of, field)}_AT = {field.position}" for field in made_of.fields)
    flags = next(field for made_of in read for field in made_of.fields if field.name == "attributes" and field.size > 1)
    yield f"    BATCH_FLAGS_AT = {flags.position + flags.size - 1}  # the lower byte of the attributes"
    yield from (f"    KNOWN_ATTRIBUTES_V{magic} = {bits:#04x}" for magic, bits in known_attributes().items())
    for name, (shift, mask) in attribute_bits().items():
        short = re.sub("^(is|has)_", "", name).upper()
        yield f"    {short}_MASK = {mask:#04x}"
        yield f"    {short}_SHIFT = {shift}"
    for magic, size in least_sizes().items():
        yield f"    LEAST_SIZE_V{magic} = {size}"
    for made_of in read:
        for field in made_of.fields:
            kind = C_TYPES[field.code]
            yield f"\n\ncdef inline {kind} {constant(made_of, field).lower()}(const uint8_t* at) noexcept nogil:"
            yield f"    return <{kind}>big_endian(at + {constant(made_of, field)}_AT, {field.size})"


def numbers() -> Iterator[str]:
    """The lines of the kernel's part with the contract's numbers."""
    made_of = "kseg.kernel.contract, fold_contract, program and statistics_contract"
    yield f"# The numbers of {made_of}. Made from them by tools/generate.py: edit those."
    for shown in (contract.Stop, contract.Problem, contract.Contents, program.Op):
        yield f"\ncpdef enum {shown.__name__}:"
        yield from (f"    {member.name} = {member.value}" for member in shown)
    yield "\ncdef enum:"
    for used in (program.Slot, program.Text):
        yield from (f"    {member.name} = {member.value}" for member in used)
        yield f"    {used.__name__.upper()}S = {len(used)}"
    yield f"    ROW = {contract.ROW}"
    yield from (f"    EVENT_{event.name} = {event.value}" for event in fold_contract.Event)
    for name in ("UNCHECKED", "RECENT"):
        yield f"    {name} = {getattr(fold_contract, name)}"
    yield from statistics_numbers()
    for name in ("UNKNOWN_CONTROL", "MALFORMED_CONTROL", "CONTROL_TEMPLATES"):
        yield f"    {name} = {getattr(program, name)}"


def statistics_numbers() -> Iterator[str]:
    """The numbers of kseg.kernel.statistics_contract; the values of a table's rows begin with what the row is of."""
    for values in (
        statistics_contract.OfHistogram,
        statistics_contract.OfCodec,
        statistics_contract.OfTime,
        statistics_contract.OfProducer,
        statistics_contract.OfKey,
    ):
        prefix = values.__name__.replace("Of", "OF_").upper()
        yield from (f"    {prefix}_{value.name} = {value.value}" for value in values)
        yield f"    {prefix}_VALUES = {len(values)}"
    yield from (f"    MEASURE_{measure.name} = {measure.value}" for measure in statistics_contract.Measure)
    yield f"    MEASURES = {len(statistics_contract.Measure)}"
    for name in (
        "EXACT_BUCKETS",
        "BUCKETS_A_DOUBLING",
        "BUCKETS",
        "MOST_LARGEST",
        "MOST_TIMES",
        "MOST_PRODUCERS",
        "OTHER_PRODUCERS",
        "WEEK_HOURS",
        "HOUR_MS",
    ):
        yield f"    {name} = {getattr(statistics_contract, name)}"
    yield f"    FULL_BATCH = {statistics_contract.BATCH_SIZE}"
    yield f"    LINGERS = {len(statistics_contract.LINGERS_MS)}"


def constant(made_of: Structure, field: Field) -> str:
    """A field's name as a constant."""
    return f"{made_of.prefix}_{field.name}".upper()


def capitalized(text: str) -> str:
    """A sentence's beginning; names stay as they are."""
    return text if re.match(r"\w*_", text) else text[:1].upper() + text[1:]
