"""Murmur3 hashes of columns, as Iceberg's bucket transform defines them, without a call per record.

Source: Iceberg's table spec, "Appendix B: 32-bit Hash Requirements".
"""

import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 4096
"""The most bytes of a value that is hashed together with others, four bytes at a time."""
_UINT32 = pa.uint32()
_MASK = (1 << 32) - 1
_C1, _C2 = 0xCC9E2D51, 0x1B873593


def bucket_numbers(column: pa.Array, buckets: int) -> pa.Array:
    """Return the bucket of each value, as 32-bit integers; null for null. The column has bytes, text or integers."""
    hashes = pc.bit_wise_and(murmur3_32(_bytes_of(column)), _number((1 << 31) - 1)).cast(pa.int64())
    quotient = pc.divide(hashes, pa.scalar(buckets, pa.int64()))
    return pc.subtract(hashes, pc.multiply(quotient, pa.scalar(buckets, pa.int64()))).cast(pa.int32())


def _bytes_of(column: pa.Array) -> pa.Array:
    """Return the hashed bytes of each value: an integer's are its 64 bits, the lowest byte first."""
    if not pa.types.is_integer(column.type):
        return column.cast(pa.large_binary())
    wide = pc.fill_null(column.cast(pa.int64()), 0)
    fixed = pa.Array.from_buffers(pa.binary(8), len(wide), [None, wide.buffers()[1]], offset=wide.offset)
    return pc.if_else(pc.is_null(column), pa.scalar(None, pa.large_binary()), fixed.cast(pa.large_binary()))


def murmur3_32(values: pa.Array) -> pa.Array:
    """Return the 32-bit hash of each binary value with the seed 0; null for null."""
    sizes = pc.fill_null(pc.binary_length(values).cast(pa.int64()), 0)
    is_long = pc.greater(sizes, LONGEST)
    if pc.any(is_long).as_py():
        short = murmur3_32(pc.if_else(is_long, pa.scalar(None, values.type), values))
        long = pa.array([_murmur3_of(value) for value in values.filter(is_long).to_pylist()], _UINT32)
        return pc.replace_with_mask(short, is_long, long)
    order = pc.sort_indices(sizes, sort_keys=[("", "descending")])
    values, sizes = values.take(order), sizes.take(order)
    hashes = _mix_end(_mix_tails(_mix_blocks(values, sizes), values, sizes), sizes)
    hashes = pc.if_else(pc.is_null(values), pa.scalar(None, _UINT32), hashes)
    return hashes.take(pc.sort_indices(order))


def _mix_blocks(values: pa.Array, sizes: pa.Array) -> pa.Array:
    """Return the hashes after all blocks of four bytes; the longest values come first."""
    hashes = pa.repeat(_number(0), len(values))
    for block in range((pc.max(sizes).as_py() or 0) // 4):
        count = pc.sum(pc.greater_equal(sizes, 4 * block + 4)).as_py()
        mixed = pc.bit_wise_xor(hashes.slice(0, count), _scramble(_words(values.slice(0, count), 4 * block, 4)))
        mixed = pc.add(pc.multiply(_rotate(mixed, 13), _number(5)), _number(0xE6546B64))
        hashes = pa.concat_arrays([mixed, hashes.slice(count)])
    return hashes


def _mix_tails(hashes: pa.Array, values: pa.Array, sizes: pa.Array) -> pa.Array:
    """Return the hashes after the last one to three bytes of each value."""
    rest = pc.bit_wise_and(sizes, 3)
    for size in (1, 2, 3):
        is_its = pc.equal(rest, size)
        tails = pc.binary_slice(values.filter(is_its), -size)
        mixed = pc.bit_wise_xor(hashes.filter(is_its), _scramble(_words(tails, 0, size)))
        hashes = pc.replace_with_mask(hashes, is_its, mixed)
    return hashes


def _words(values: pa.Array, start: int, size: int) -> pa.Array:
    """Return one to four bytes of each value as an unsigned integer, the lowest byte first."""
    pieces = pc.fill_null(pc.binary_slice(values, start, start + size), bytes(size))
    if size < 4:
        end = pa.repeat(pa.scalar(bytes(4 - size), pieces.type), len(pieces))
        pieces = pc.binary_join_element_wise(pieces, end, pa.scalar(b"", pieces.type))
    fixed = pieces.cast(pa.binary(4))
    return pa.Array.from_buffers(_UINT32, len(fixed), [None, fixed.buffers()[1]], offset=fixed.offset)


def _scramble(words: pa.Array) -> pa.Array:
    return pc.multiply(_rotate(pc.multiply(words, _number(_C1)), 15), _number(_C2))


def _mix_end(hashes: pa.Array, sizes: pa.Array) -> pa.Array:
    hashes = pc.bit_wise_xor(hashes, sizes.cast(_UINT32))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        hashes = pc.multiply(pc.bit_wise_xor(hashes, pc.shift_right(hashes, _number(shift))), _number(factor))
    return hashes


def _rotate(words: pa.Array, count: int) -> pa.Array:
    return pc.bit_wise_or(pc.shift_left(words, _number(count)), pc.shift_right(words, _number(32 - count)))


def _number(value: int) -> pa.Scalar:
    return pa.scalar(value, _UINT32)


def _murmur3_of(value: bytes) -> int:
    """Return the hash of one long value: its many blocks would be read one at a time among few others."""
    state, end = 0, len(value) // 4 * 4
    for word in memoryview(value)[:end].cast("I"):
        state ^= _scrambled_int(word)
        state = ((state << 13 | state >> 19) * 5 + 0xE6546B64) & _MASK
    if end < len(value):
        state ^= _scrambled_int(int.from_bytes(value[end:], "little"))
    state ^= len(value)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & _MASK
    return state


def _scrambled_int(word: int) -> int:
    word = word * _C1 & _MASK
    return (word << 15 | word >> 17) * _C2 & _MASK
