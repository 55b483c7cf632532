# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=False
"""The compiled kernel: scans, renders and splits runs of batches at the speed of memory.

Headers are read at fixed places, of rows that `scan` or `check_rows` found to lie within their buffer. Whatever has a
length of its own (records, inner messages, compressed bodies) is read through `Cursor`, which never passes its end.
`twin` does the same in Python; tests hold the two equal on valid and on damaged bytes.
"""

cimport cython
from libc.stdint cimport INT64_MIN, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memchr, memcmp, memcpy, memset
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AsString, PyBytes_Size
from posix.unistd cimport pread

from functools import lru_cache
from os import urandom

from kseg.formats.header_fields import HEADER_NAMES
from kseg.kernel.contract import Problem as ProblemValue
from kseg.kernel.contract import RecordProblem

cdef extern from "crc.h" nogil:
    void crc_prepare()
    uint32_t crc32_of(const uint8_t* at, size_t size)
    uint32_t crc32c_of(const uint8_t* at, size_t size)

cdef extern from "ascii.h" nogil:
    enum: ASCII_SLACK
    void ascii_prepare()
    size_t ascii_copy(uint8_t* out, const uint8_t* at, size_t size)
    void escape_ascii(uint8_t** out, const uint8_t** at, const uint8_t* stop, uint64_t* seen)

cdef extern from "keyed.h" nogil:
    enum: KEYED_IS_HERE, KEYED_LONGEST_KEY, KEYED_SLOTS
    ctypedef struct keyed_pair:
        pass
    ctypedef struct keyed_secret:
        uint8_t* key
        size_t key_size
        const uint8_t** singles
        const uint8_t* printable
        keyed_pair* known
    void keyed_prepare()
    void keyed_begin(keyed_secret* secret)
    int keyed_replace(const keyed_secret* secret, uint8_t* at, size_t size)

NAME = "fast"
crc_prepare()
keyed_prepare()
ascii_prepare()

include "fast/numbers.pxi"
include "fast/reading.pxi"
include "fast/declarations.pxi"
include "fast/scanning.pxi"
include "fast/output.pxi"
include "fast/text.pxi"
include "fast/records.pxi"
include "fast/templates.pxi"
include "fast/filtering.pxi"
include "fast/rendering.pxi"
include "fast/redacting.pxi"
include "fast/memory.pxi"
include "fast/columns.pxi"
include "fast/bodies.pxi"
include "fast/record_objects.pxi"
include "fast/sum_table.pxi"
include "fast/producers.pxi"
include "fast/index_entries.pxi"
include "fast/folding.pxi"
include "fast/encoding.pxi"
include "fast/cleaning.pxi"
include "fast/merging.pxi"
include "fast/statistics.pxi"
include "fast/carving.pxi"
include "fast/pieces.pxi"
include "fast/marks.pxi"
