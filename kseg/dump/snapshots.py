"""Prints producer snapshots. Source: DumpLogSegments, ProducerStateManager."""

from collections.abc import Sequence
from itertools import accumulate
from struct import calcsize
from typing import TYPE_CHECKING

from kseg.dump.entries import EntryFile
from kseg.formats.fixed import PRODUCER_ENTRY_FIELDS, PRODUCER_SNAPSHOT_HEADER_FIELDS, FixedFields
from kseg.layouts import snapshots as layout
from kseg.releases import Release, at

if TYPE_CHECKING:
    from kseg.dump.options import DumpContext
