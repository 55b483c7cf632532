"""The Python twin of the compiled kernel: the same entry points, written for readability."""

# ruff: noqa: F401  the imports are the entry points

from kseg.kernel.twin.carving import find_batches, find_copies, step_crcs
from kseg.kernel.twin.cleaning import Encoded, OffsetTable
from kseg.kernel.twin.columns import Columns, columns
from kseg.kernel.twin.fold import EntryWriter, HeaderFold, OffsetEntries, ProducerTable, TimeEntries, end_marker
from kseg.kernel.twin.headers import HeaderColumns, crc32c, find_header, header_columns, scan, select, walk, walk_file
from kseg.kernel.twin.marks import find_checkpoints, find_signatures
from kseg.kernel.twin.merging import MergedRecords
from kseg.kernel.twin.pieces import (
    block_crcs,
    chain_crcs,
    find_headless,
    find_heads,
    find_middles,
    rest_crcs,
    wanted_crcs,
)
from kseg.kernel.twin.rendering import Output, Renderer
from kseg.kernel.twin.rows import Bodies, Replacer, records, replace_contents
from kseg.kernel.twin.statistics import Statistics

NAME = "twin"
