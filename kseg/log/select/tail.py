"""Finds where the last records of a partition begin, reading from its end as little as may be."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.log.select.selector import Selector, starts_from_end
from kseg.reading.log_file import LogFile


class SelectedTail(NamedTuple):
    """Where a tail begins: in which of the logs, at which position (None: where reading begins anyway), after how many.

    All logs before `number` hold nothing of it; the first `skip` of what is selected in that log are before it.
    """

    number: int
    start: int | None
    skip: int


def find_tail(
    logs: Sequence[Path],
    count: int,
    selector: Selector,
    open_log: Callable[[Path], AbstractContextManager[LogFile]],
    counted: Callable[[LogFile, int], int],
) -> SelectedTail:
    """Where the last `count` of what is selected begin.

    Logs that can't be opened are passed over: who reads them says so.

    Args:
        logs: in the order of their offsets.
        count: records; or batches, if these are counted.
        selector: what is selected; it has to start over afterwards.
        open_log: opens one of the logs.
        counted: how many are selected of a log from a position on.
    """
    wanted = count
    for number in range(len(logs) - 1, -1, -1):
        if wanted == 0:
            return SelectedTail(number + 1, None, 0)
        try:
            selector.start_over()
            if not selector.may_hold(logs[number]):
                continue
            with open_log(logs[number]) as log_file:
                found = 0
                for start in starts_from_end(log_file, selector):
                    selector.start_over()
                    found = counted(log_file, start)
                    if found >= wanted:
                        return SelectedTail(number, start, found - wanted)
        except OpenError:
            continue
        finally:
            selector.start_over()
        wanted -= found
    return SelectedTail(0, None, 0)
