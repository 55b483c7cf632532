"""kernel/fast/contract.pxi: the numbers of kernel/contract.py and its neighbours, for the compiled kernel."""

from collections.abc import Iterator
from enum import IntEnum

from kseg.kernel import carve_contract, contract, entry_points, fold_contract, statistics_contract


def kernel_contract() -> str:
    """Return the text of kseg/kernel/fast/contract.pxi."""
    return "\n".join(numbers()) + "\n"


def numbers() -> Iterator[str]:
    """Yield the lines of the kernel's part with the contract's numbers."""
    made_of = "kseg.kernel.contract, carve_contract, entry_points, fold_contract and statistics_contract"
    yield f"# The numbers of {made_of}. Made from them by tools/generate.py: edit those."
    for shown in (contract.Stop, contract.Problem, entry_points.Contents):
        yield f"\ncdef enum {shown.__name__}:"
        yield from (f"    {member.name} = {member.value}" for member in shown)
    yield "\ncdef enum Op:"
    yield from member_lines(contract.Op)
    yield "\ncdef enum:"
    for used in (contract.Slot, contract.Text):
        yield from member_lines(used)
        yield f"    {used.__name__.upper()}S = {len([*member_lines(used)])}"
    yield f"    ROW = {contract.ROW}"
    yield from (f"    EVENT_{event.name} = {event.value}" for event in fold_contract.Event)
    for name in ("UNCHECKED", "RECENT"):
        yield f"    {name} = {getattr(fold_contract, name)}"
    for name in (
        "CRC_STEP",
        "LARGEST_BATCH",
        "SMALL_BATCH",
        "MOST_READ",
        "CRC_START",
        "SURE_BREAK",
        "SURE_REST",
        "MOST_MIDDLES",
    ):
        yield f"    {name} = {getattr(carve_contract, name)}"
    yield from row_numbers(carve_contract.OfMiddle)
    yield from statistics_numbers()
    for name in ("UNKNOWN_CONTROL", "MALFORMED_CONTROL", "CONTROL_TEMPLATES"):
        yield f"    {name} = {getattr(contract, name)}"
    yield ""
    for name in ("LINGERS_MS", "TIME_STEPS"):
        yield f"{name} = {getattr(statistics_contract, name)}"


def member_lines(numbers: type) -> Iterator[str]:
    """Yield the lines of the numbers in a class."""
    yield from (f"    {name} = {number}" for name, number in vars(numbers).items() if name.isupper())


def row_numbers(values: type[IntEnum]) -> Iterator[str]:
    """Yield the numbers of the values of a row."""
    prefix = values.__name__.replace("Of", "OF_").upper()
    yield from (f"    {prefix}_{value.name} = {value.value}" for value in values)
    yield f"    {prefix}_VALUES = {len(values)}"


def statistics_numbers() -> Iterator[str]:
    """Yield the numbers of kseg.kernel.statistics_contract.

    The values of a table's rows begin with the subject of the row.
    """
    for values in (
        statistics_contract.OfHistogram,
        statistics_contract.OfCodec,
        statistics_contract.OfTime,
        statistics_contract.OfProducer,
        statistics_contract.OfKey,
    ):
        yield from row_numbers(values)
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
