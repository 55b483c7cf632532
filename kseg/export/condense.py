"""Results joined to fewer: what a table's log keeps of each partition doesn't grow with the number of runs.

What was read of one segment becomes one result, and what was read of segments that have gone becomes one too: a source
that changes takes no rows with it that couldn't be read again.
"""

from collections.abc import Collection, Iterable
from dataclasses import fields, replace

from kseg.export.copies import Copies
from kseg.export.result import Result, SourceFile
from kseg.export.settings import OffsetRange
from kseg.export.tally import Tally

_SUMS = tuple(field.name for field in fields(Tally) if field.type == "int" or field.type is int)
_POLYNOMIAL = 0x82F63B78
"""Of CRC-32C, the lowest bit first."""
_ONE = 1 << 31


def condensed(results: Iterable[Result]) -> list[Result]:
    """The results in order of offsets, without their files, joined where one goes on where another ended."""
    by_copy: dict[tuple[str, int | None, str | None, str], list[Result]] = {}
    for result in results:
        without = replace(result, files=(), earlier_files=result.earlier_files + len(result.files))
        key = (result.topic, result.partition, result.topic_id, result.replica)
        by_copy.setdefault(key, []).append(without)
    return [joined for key in sorted(by_copy, key=_partition_of) for joined in _of_copy(by_copy[key])]


def _partition_of(key: tuple[str, int | None, str | None, str]) -> tuple[str, int]:
    """What copies are sorted by; topics of one name stay in the order in which they followed one another."""
    return key[0], -1 if key[1] is None else key[1]


def _of_copy(results: list[Result]) -> list[Result]:
    joined: list[Result] = []
    for result in sorted(results, key=_first):
        if joined and _goes_on(joined[-1], result):
            joined[-1] = _both(joined[-1], result)
        else:
            joined.append(result)
    return joined


def _first(result: Result) -> int:
    first = result.tally.first_offset
    return -1 if first is None else first


def _goes_on(one: Result, other: Result) -> bool:
    """Whether a result takes up where another one ended, in the same segment or in none that is left."""
    tallies = one.tally, other.tally
    if one.tally.next_offset is None or one.tally.next_offset != other.tally.first_offset or other.tally.missed:
        return False
    if any(tally.disordered or tally.holes for tally in tallies):
        return False
    end, first = one.wanted.end, other.wanted.first
    if end is not None and first is not None and first > end:
        return False
    logs = {source.path for each in (one, other) for source in each.sources}
    return len(logs) < 2 and bool(one.sources) == bool(other.sources)


def _both(one: Result, other: Result) -> Result:
    sources = list(one.sources)
    for source in other.sources:
        if sources and (both := _joined_source(sources[-1], source)) is not None:
            sources[-1] = both
        else:
            sources.append(source)
    return replace(
        one,
        wanted=OffsetRange(one.wanted.first, other.wanted.end),
        sources=tuple(sources),
        tally=_joined_tally(one.tally, other.tally),
        seconds=round(one.seconds + other.seconds, 3),
        earlier_files=one.earlier_files + other.earlier_files,
        is_partly_gone=one.is_partly_gone or other.is_partly_gone,
    )


def _joined_tally(one: Tally, other: Tally) -> Tally:
    sums = {name: getattr(one, name) + getattr(other, name) for name in _SUMS}
    return replace(
        other,
        **sums,
        first_offset=one.first_offset,
        epochs=_joined_epochs(one, other),
        losses=[*one.losses, *other.losses],
        notes=list(dict.fromkeys([*one.notes, *other.notes])),
    )


def _joined_epochs(one: Tally, other: Tally) -> list[tuple[int, int]]:
    """The leader epochs of both; none if those of one aren't known."""
    if any(tally.read and not tally.epochs for tally in (one, other)):
        return []
    is_same = bool(one.epochs and other.epochs) and one.epochs[-1][0] == other.epochs[0][0]
    return [*one.epochs, *(other.epochs[1:] if is_same else other.epochs)]


def _joined_source(one: SourceFile, other: SourceFile) -> SourceFile | None:
    if one.path != other.path or one.end != other.start or one.is_cleaned != other.is_cleaned:
        return None
    crc = None
    if one.crc is not None and other.crc is not None:
        crc = joined_crc(one.crc, other.crc, other.end - other.start)
    return other._replace(start=one.start, crc=crc)


def without_gone(results: Iterable[Result], copies: Copies) -> list[Result]:
    """The results without those sources that have gone from copies which are there: they can't change any more."""
    listed = {replica.path: {each.log for each in replica.segments} for known in copies.values() for replica in known}
    return [_without_gone(result, listed[result.replica]) if result.replica in listed else result for result in results]


def _without_gone(result: Result, there: Collection[str]) -> Result:
    left = tuple(source for source in result.sources if source.path in there)
    return result if left == result.sources else replace(result, sources=left, is_partly_gone=True)


# --- CRCs of bytes that follow each other ----------------------------------------------------------------------------


def joined_crc(one: int, other: int, size: int) -> int:
    """The CRC-32C of bytes that end with `size` bytes, from the CRC of those before and the CRC of those."""
    return _times(_power_of_x(8 * size), one) ^ other


def _power_of_x(exponent: int) -> int:
    """The power of x, modulo the polynomial."""
    found, square = _ONE, _ONE >> 1
    while exponent:
        if exponent & 1:
            found = _times(square, found)
        square = _times(square, square)
        exponent >>= 1
    return found


def _times(one: int, other: int) -> int:
    """The product of two polynomials, modulo CRC-32C's."""
    product, bit = 0, _ONE
    while bit:
        if one & bit:
            product ^= other
        bit >>= 1
        other = (other >> 1) ^ _POLYNOMIAL if other & 1 else other >> 1
    return product
