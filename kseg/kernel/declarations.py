"""Declared fields and numbers for the compiled kernel: the text of fast/declarations.pxi, which setup.py writes."""

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    BATCH_LENGTH,
    BATCH_MAGIC,
    CONTROL_RECORD_KEY_FIELDS,
    END_TXN_MARKER_FIELDS,
    HEADER_NAMES,
    KNOWN_ATTRIBUTES,
    LEAST_SIZES,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
    OFFSET_INDEX_ENTRY_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    FixedField,
    FixedFields,
)
from kseg.kernel import carve_contract, contract, entry_points, fold_contract, statistics_contract

C_TYPES = {"b": "int8_t", "h": "int16_t", "i": "int32_t", "I": "uint32_t", "q": "int64_t"}


class Structure(NamedTuple):
    """A structure that the kernel reads: its name, and the prefix of its fields' names."""

    name: str
    prefix: str
    fields: FixedFields

    def named_fields(self) -> Iterator[tuple[str, FixedField]]:
        """Yield each field with its name in capitals."""
        yield from ((f"{self.prefix}_{name}".upper(), self.fields.field(name)) for name in self.fields.names)


STRUCTURES = (
    Structure("LOG_ENTRY_HEADER_V0", "ENTRY_V0", LOG_ENTRY_HEADER_V0_FIELDS),
    Structure("LOG_ENTRY_HEADER_V1", "ENTRY_V1", LOG_ENTRY_HEADER_V1_FIELDS),
    Structure("BATCH_HEADER", "BATCH", BATCH_HEADER_FIELDS),
    Structure("CONTROL_RECORD_KEY", "CONTROL_KEY", CONTROL_RECORD_KEY_FIELDS),
    Structure("END_TXN_MARKER", "MARKER", END_TXN_MARKER_FIELDS),
    Structure("OFFSET_INDEX_ENTRY", "OFFSET_ENTRY", OFFSET_INDEX_ENTRY_FIELDS),
    Structure("TIME_INDEX_ENTRY", "TIME_ENTRY", TIME_INDEX_ENTRY_FIELDS),
)


NAMED_ENUMS: tuple[type, ...] = (contract.Stop, contract.Problem, entry_points.Contents, contract.Op)
"""Enumerations of the contracts with their own names in the kernel."""


class Numbers(NamedTuple):
    """An enumeration whose members are numbers of the kernel, the prefix of their names, and their count's name."""

    values: type
    prefix: str
    count_name: str


NUMBERS = (
    Numbers(contract.Slot, "", "SLOTS"),
    Numbers(contract.Text, "", "TEXTS"),
    Numbers(fold_contract.Event, "EVENT_", "EVENTS"),
    Numbers(carve_contract.OfMiddle, "OF_MIDDLE_", "OF_MIDDLE_VALUES"),
    Numbers(statistics_contract.OfHistogram, "OF_HISTOGRAM_", "OF_HISTOGRAM_VALUES"),
    Numbers(statistics_contract.OfCodec, "OF_CODEC_", "OF_CODEC_VALUES"),
    Numbers(statistics_contract.OfTime, "OF_TIME_", "OF_TIME_VALUES"),
    Numbers(statistics_contract.OfProducer, "OF_PRODUCER_", "OF_PRODUCER_VALUES"),
    Numbers(statistics_contract.OfKey, "OF_KEY_", "OF_KEY_VALUES"),
    Numbers(statistics_contract.Measure, "MEASURE_", "MEASURES"),
)
CONSTANTS: tuple[tuple[ModuleType, str], ...] = (
    (contract, "ROW LEAST_RECORD UNKNOWN_CONTROL MALFORMED_CONTROL CONTROL_TEMPLATES"),
    (fold_contract, "UNCHECKED RECENT"),
    (carve_contract, "CRC_STEP LARGEST_BATCH SMALL_BATCH MOST_READ CRC_START SURE_BREAK SURE_REST MOST_MIDDLES"),
    (statistics_contract, "EXACT_BUCKETS BUCKETS_A_DOUBLING BUCKETS MOST_LARGEST MOST_TIMES MOST_PRODUCERS"),
    (statistics_contract, "OTHER_PRODUCERS WEEK_HOURS HOUR_MS"),
)


def write_declarations(path: Path) -> None:
    """Write the part, unless the file is up to date: Cython compares modification times."""
    text = "\n".join(part()) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def part() -> Iterator[str]:
    """Yield the lines of the part."""
    yield "# Numbers of the contracts, and positions and readers of fields. Made by each build: kernel/declarations.py."
    yield "# unsafe: callers have a structure's bytes from `at` on, up to the field's end at least."
    for named in NAMED_ENUMS:
        yield f"\ncdef enum {named.__name__}:"
        yield from (f"    {name} = {number}" for name, number in members(named))
    yield "\ncdef enum:"
    yield from (f"    {name} = {number}" for name, number in contract_numbers())
    yield from (f"    {name} = {number}" for name, number in numbers())
    yield f"\nLINGERS_MS = {statistics_contract.LINGERS_MS}"
    yield f"TIME_STEPS = {statistics_contract.TIME_STEPS}\n"
    for structure in STRUCTURES:
        for name, field in structure.named_fields():
            kind = C_TYPES[field.code]
            reader = f"cdef inline {kind} {name.lower()}(const uint8_t* at) noexcept nogil:"
            yield f"{reader} return <{kind}>big_endian(at + {name}_AT, {field.size})"
    yield "\n\ncdef inline void put_batch_header(const uint8_t* at, int64_t* to, Py_ssize_t step) noexcept nogil:"
    yield '    """The fields that are values of a header as they are, into their columns."""'
    for name in BATCH_HEADER_FIELDS.names:
        if name in HEADER_NAMES:
            yield f"    to[COLUMN_{name.upper()} * step] = batch_{name}(at)"


def members(numbers: type) -> list[tuple[str, int]]:
    """Return names and numbers of an enumeration, or of a plain class of numbers, which starts import faster."""
    if issubclass(numbers, Enum):
        return [(member.name, member.value) for member in numbers]
    return [(name, number) for name, number in vars(numbers).items() if name.isupper()]


def contract_numbers() -> Iterator[tuple[str, int]]:
    """Yield names of constants of the contracts with their values."""
    for values, prefix, count_name in NUMBERS:
        named = members(values)
        if values in (contract.Slot, contract.Text) and [number for _, number in named] != [*range(len(named))]:
            raise ValueError(f"{values.__name__}: the numbers aren't 0 to {len(named) - 1}; number the members again")
        yield from ((prefix + name, number) for name, number in named)
        yield count_name, len(named)
    for module, names in CONSTANTS:
        yield from ((name, getattr(module, name)) for name in names.split())
    yield "FULL_BATCH", statistics_contract.BATCH_SIZE
    yield "LINGERS", len(statistics_contract.LINGERS_MS)


def numbers() -> Iterator[tuple[str, int]]:
    """Yield names of constants with their values."""
    yield "LOG_OVERHEAD", BATCH_LENGTH.end
    yield "MAGIC_AT", BATCH_MAGIC.position
    for structure in STRUCTURES:
        yield f"{structure.name}_SIZE", structure.fields.struct.size
        yield from ((f"{name}_AT", field.position) for name, field in structure.named_fields())
    yield "BATCH_FLAGS_AT", BATCH_HEADER_FIELDS.field("attributes").end - 1  # the lower byte
    yield from ((f"KNOWN_ATTRIBUTES_V{magic}", bits) for magic, bits in KNOWN_ATTRIBUTES.items())
    for bits, shift, mask in BATCH_HEADER_FIELDS.bits("attributes"):
        if bits.name != "unused":
            name = bits.name.removeprefix("is_").removeprefix("has_").upper()
            yield f"{name}_MASK", mask
            yield f"{name}_SHIFT", shift
    yield from ((f"LEAST_SIZE_V{magic}", size) for magic, size in LEAST_SIZES.items())
    yield from ((f"COLUMN_{name.upper()}", number) for number, name in enumerate(HEADER_NAMES))
    yield "HEADER_VALUES", len(HEADER_NAMES)
