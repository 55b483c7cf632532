"""A DuckDB connection with views over logs, for programs and notebooks."""

import os
import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from kseg.api.asked import DecodedOptions, asked_selection
from kseg.api.kseg_warning import warn
from kseg.api.record_tables import column_decoding
from kseg.archive.paths import leads_inside
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.system.scratch import scratch_directory
from kseg.times import parse_zone

if TYPE_CHECKING:
    import duckdb

    from kseg.query.query_session import Queried


def connect(
    path: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    topic: str | Iterable[str] = (),
    partition: int | Iterable[int] = (),
    files: str | os.PathLike[str] | None = None,
    memory: int | None = None,
    **options: Unpack[DecodedOptions],
) -> "duckdb.DuckDBPyConnection":
    """A connection to a DuckDB database in memory, with the views and tables of `kseg query`.

    What is damaged is left out of answers, with a warning. SQL reaches no files and no network, and can't change that.
    Temporary files go when the connection is collected as garbage.

    Args:
        path: a log directory, a parent of such, or a partition's directory; also in an archive.
        more: further disks of the same broker.
        topic: names or globs of the topics that are meant.
        partition: numbers of the partitions that are meant.
        files: a directory in which SQL may read and write files.
        memory: the most bytes of memory; None for half of the machine's.
        options: which records, and what decodes them, as for `kseg.open(…).to_arrow`.

    Raises:
        OpenError: a path isn't there, or has nothing of Kafka's.
        UsageError: a library is missing, nothing that is meant is there, or an option can't be.
    """
    from kseg.query.libraries import require_libraries

    require_libraries()
    from kseg.query.database import QueryLimits
    from kseg.query.query_log import QueryLog
    from kseg.query.query_session import new_session

    topics = (topic,) if isinstance(topic, str) else tuple(topic)
    numbers = (partition,) if isinstance(partition, int) else partition
    choice = PartitionChoice(topics, tuple(range(number, number + 1) for number in numbers))
    limits = QueryLimits(memory, files=None if files is None else Path(files))
    with ExitStack() as stack:
        paths = _local_paths([os.fspath(each) for each in (path, *more)], stack)
        scratch = stack.enter_context(scratch_directory())
        zone = parse_zone(options.get("tz", "UTC"))
        session = new_session(
            _queried(paths, choice, options), limits, scratch, QueryLog(lambda error: warn(str(error)), warn), zone
        )
        weakref.finalize(session.connection, stack.pop_all().close)
        return session.connection


def _local_paths(given: list[str], stack: ExitStack) -> tuple[Path, ...]:
    if not any(map(leads_inside, given)):
        return tuple(map(Path, given))
    from kseg.archive.inputs import Inputs

    inputs = stack.enter_context(Inputs(warn))
    return tuple(Path(inputs.local(each)) for each in given)


def _queried(paths: tuple[Path, ...], choice: PartitionChoice, options: DecodedOptions) -> "Queried":
    from kseg.export.decoding import DecodedAs
    from kseg.export.settings import Isolation, LogSelection, OffsetRange, ReadOptions
    from kseg.query.query_session import Queried

    asked = asked_selection(None, options, has_control=False)
    decode = replace(column_decoding(options), decoded_as=DecodedAs.TYPED)
    decode.check()
    read = ReadOptions(
        control=asked.is_control is not False,
        isolation=Isolation.READ_COMMITTED if asked.is_committed else Isolation.READ_UNCOMMITTED,
        selected=asked._replace(
            from_offset=None, to_offset=None, is_committed=False, is_control=asked.is_control or None
        ),
        decode=decode,
    )
    selection = LogSelection(choice, OffsetRange(asked.from_offset, asked.to_offset), first_time=asked.from_time)
    return Queried(paths, choice, selection, read)
