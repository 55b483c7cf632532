"""`kseg diff`: compares copies of partitions, disks or brokers."""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.commands.options.command import RowOptions, WorkOptions, command
from kseg.diff.comparison import diff_partitions
from kseg.diff.copies import as_the_cluster_has_them
from kseg.diff.differences import Sides, find_copies
from kseg.dump.held_records import CSV_FIELDS, held_text
from kseg.errors import KsegError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.system.placed_path import is_far
from kseg.text.diff import DiffReport
from kseg.times import parse_zone


class DiffOptions(NamedTuple):
    """The compared paths, and the zone of printed times."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    leader: Path | None
    has_records: bool
    zone: str
    rows: RowOptions
    work: WorkOptions
    verbose: bool
    talk: Talk


@command(DiffOptions)
def diff(options: DiffOptions) -> None:
    """Compare replicas, backups, disks or whole brokers.

    Use `diff` to see whether copies of partitions have the same records. Batches, compression and segments may differ.
    PATHS never change.

    \b
    Examples:
      kseg diff broker1/orders-0 broker2/orders-0
      kseg diff broker1/ broker2/ broker3/ --topic orders --leader broker2/
      kseg diff broker1/ broker2/ --records -o json | jq -r .value
      kseg diff broker1/ broker3/ -o table

    PATHS are two or more sides: partition directories, log directories, parents of these, or archives. `diff` matches
    partitions by topic and number.

    Each partition has one of these results. `identical`: the copies have the same records at the same offsets, and all
    CRCs are right. `ahead`: one copy continues after the end of another. `diverged`: an offset has different records or
    different leader epochs. `holes`: a copy lacks records in its middle, or has unreadable bytes. `onlyHere`: a side
    doesn't have the partition.

    Offsets below the latest log start offset aren't compared. Records that compaction removes may be missing.

    --leader shows the effect of an election: the offset to which each other copy would truncate its log, by leader
    epochs as a broker does, and the records that the leader lacks.

    The exit status is 0 if all partitions are identical, otherwise 1.
    """
    paths, choice, rows, work, talk = options.paths, options.choice, options.rows, options.work, options.talk
    zone = parse_zone(options.zone)
    form = rows.form(zone)
    show = partial(held_text, rows.output, rows.csv.style, zone) if options.has_records else None
    processes = work.begin()
    sides = Sides(paths, talk.refuse)
    copies = find_copies(sides, talk.note, choice, leader=options.leader)
    found = as_the_cluster_has_them(copies, sides, choice)
    report = DiffReport(
        form,
        quiet=talk.is_quiet,
        verbose=options.verbose,
        record_fields=CSV_FIELDS if options.has_records else (),
    )
    with talk.bar() as bar:
        on_read = bar.counting("diff", sum(copies.size for copies in found))
        items = diff_partitions(
            found,
            keep_cache=work.keep_cache,
            show=show,
            processes=processes,
            on_read=on_read,
            is_far=any(map(is_far, paths)),
        )
        for item in items:
            if isinstance(item, KsegError):
                talk.refuse(item)
            else:
                report.take(item)
    report.finish()
    flush_stdout()
    talk.end_with(not report.summary.is_identical)
