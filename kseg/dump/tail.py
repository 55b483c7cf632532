"""Finds where the last records of a partition begin, reading from its end as little as may be."""

from pathlib import Path
from typing import TYPE_CHECKING

from kseg.dump.log import Rendering, dump_log, new_output
from kseg.errors import OpenError
from kseg.kernel.contract import Program
from kseg.layouts.compiler import compile_template
from kseg.log.select.selector import Selector, starts_from_end
from kseg.reading.log_file import LogFile, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kseg.dump.options import DumpContext
    from kseg.reading.damage import Damage


def find_tail(
    logs: list[str], count: int, selector: Selector, context: "DumpContext"
) -> tuple[list[str], int | None, int]:
    """The logs with the last `count` of what is selected, where to begin in the first, and how many to skip there.

    Records are counted; batches where only these are printed.
    """
    counts_batches = context.options.shallow or context.options.only == "batches"
    wanted = count
    for number in range(len(logs) - 1, -1, -1):
        if wanted == 0:
            return logs[number + 1 :], None, 0
        try:
            if not selector.may_hold(Path(logs[number])):
                continue
            with LogFile(logs[number], context.options.max_bytes) as log_file:
                found = 0
                for start in starts_from_end(log_file, selector):
                    selector.start_over()
                    found = _counted(log_file, start, selector, counts_batches=counts_batches)
                    if found >= wanted:
                        return logs[number:], start, found - wanted
        except OpenError:
            continue  # which is said when it is printed
        finally:
            selector.start_over()
        wanted -= found
    return logs, None, 0


def _counted(log_file: LogFile, start: int, selector: Selector, *, counts_batches: bool) -> int:
    items: Iterator[Run | Damage] = selector.items(log_file, start)
    if counts_batches:
        return sum(item.row_count for item in items if isinstance(item, Run))
    nothing = compile_template("")
    program = Program((None, None, None), (nothing, nothing, nothing), None)
    wanted = selector.selection.record_filter(last_offset=selector.last_offset(log_file.path))
    return dump_log(log_file, Rendering(program, record_filter=wanted), new_output(bytes), source=items).records
