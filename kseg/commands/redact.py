"""`kseg redact`: copies log directories without their contents and names, for passing on."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.commands.options.command import WorkOptions, command
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.rewrite.redact import (
    RedactedDirectory,
    RedactOrder,
    RedactSettings,
    key_in,
    redact_directory,
    redact_orders,
    redact_settings,
    unfinished_directory,
)
from kseg.rewrite.redacted_names import name_kinds
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work
from kseg.text.redact import RedactReport


class RedactOptions(NamedTuple):
    """The new directories, the names that stay, the file with the key, and the form of the report."""

    paths: tuple[Path, ...]
    directory: Path
    keep: str
    key_file: Path | None
    output: str
    work: WorkOptions
    talk: Talk


@command(RedactOptions)
def redact(options: RedactOptions) -> None:
    """Copy log directories without their contents and names.

    Use `redact` to share log directories without their contents. Keys, values, headers and names become substitutes of
    the same length; offsets, times, sizes and damage stay. PATHS never change.

    \b
    Examples:
      kseg redact kafka-logs/ --to shared
      kseg redact support.tar.gz --to shared
      kseg redact kafka-logs/ --to shared --keep topics,groups
      kseg redact broker1/ broker2/ --to shared --key-file key.txt

    PATHS are directories: a broker's log directory, a partition, a parent of these, or an archive of them. kseg writes
    new versions of all files in them: logs, indexes, snapshots, checkpoints, and the records of internal topics, in
    which only names change. Unreadable bytes become noise with the same damage; files that aren't Kafka's become zeros.
    Equal contents and names stay equal in all directories of a run. A group or transactional id stays in its partition.

    Without the key, nobody can derive the contents from the substitutes. By default, the key is random and isn't
    stored. With --key-file, two runs give the same bytes, and an interrupted run resumes when you start it again.
    """
    paths, work, talk = options.paths, options.work, options.talk
    kept = name_kinds(options.keep)
    key = None if options.key_file is None else key_in(options.key_file)
    processes = work.begin()
    settings = redact_settings(key, kept, paths)
    report = RedactReport(kept, is_key_kept=key is not None)
    with unfinished_directory(options.directory, settings, paths) as unfinished, talk.bar() as bar:
        found = redact_orders(paths, unfinished.directory, settings)
        orders = [order for order in found if not unfinished.is_done(order)]
        on_read = bar.counting("redact", sum(order.log_size for order in orders))
        redact_one = partial(_redact_one, settings, work.keep_cache)
        with shared_work(redact_one, orders, _cost_of, processes=processes, on_read=on_read, is_far=False) as results:
            for _, redacted in results:
                unfinished.note(redacted)
                report.add(redacted)
    form = form_named(options.output)
    if form.has_objects:
        form.write_object(report.as_object())
    elif not talk.is_quiet:
        write_lines(report.lines())
    flush_stdout()


def _cost_of(order: RedactOrder) -> int:
    return order.size + SMALLEST_COST


def _redact_one(
    settings: RedactSettings, keep_cache: bool, order: RedactOrder, on_read: OnRead
) -> Iterator[RedactedDirectory]:
    yield redact_directory(order, settings, keep_cache=keep_cache, on_read=on_read)
