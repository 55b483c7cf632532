"""Prints the records of several partitions together, in the order of their timestamps.

Each partition is rendered as it would be alone, a piece of a log at a time, by a program that puts a mark before each
record. The mark is random, so that nobody can have written it into a record. Pieces are cut at the marks. A record is
printed as soon as no partition can yield an earlier one.
"""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from kseg.dump.log_steps import new_output
from kseg.dump.reader import SMALL_BUFFER_SIZE, DirectoryReader
from kseg.errors import OpenError, UsageError, plural
from kseg.layouts.template import TIME_END, marked_program
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.dump.forms import Form
    from kseg.dump.plan import DumpedDirectory


MOST_PARTITIONS = 256
"""Most partitions that are merged: each takes some MiB of memory."""
_RANDOM_BYTES = 16


def print_merged(directories: "Sequence[DumpedDirectory]", form: "Form", refuse: Callable[[OpenError], None]) -> None:
    """Print the selected records of logs by timestamp; records of a directory stay in the order of their offsets.

    A record with an earlier timestamp than its predecessor in the directory, or without one, directly follows its
    predecessor. `refuse` takes the errors of files that can't be read. Raises UsageError for too many directories.
    """
    merged: dict[StrPath, DumpedDirectory] = {}
    for each in directories:
        for path in each.others:
            refuse(OpenError("isn't a log, and --merge prints only logs", path))
        known = merged.get(each.place)
        merged[each.place] = each._replace(files=(*(() if known is None else known.files), *each.logs))
    merged = {place: each for place, each in merged.items() if each.files}
    if len(merged) > MOST_PARTITIONS:
        count = (
            f"{plural(len(merged), 'partition is', 'partitions are')} more than the {MOST_PARTITIONS} that can be"
            " merged at once"
        )
        raise UsageError(f"--merge: {count}; choose some with --topic and --partition")
    mark = os.urandom(_RANDOM_BYTES).hex().encode()
    streams = [_MergedStream(each, form, mark, refuse) for each in merged.values()]
    _print(streams, form.options.selection.limit, form.merged_output().write)


class _MergedStream:
    """The printed forms of the selected records of a directory's logs, some at a time.

    times: sort keys, none less than its predecessor. texts: the records' texts. is_over: no more follow.
    """

    def __init__(
        self, directory: "DumpedDirectory", form: "Form", mark: bytes, refuse: Callable[[OpenError], None]
    ) -> None:
        self.times: list[int] = []
        self.texts: list[bytes] = []
        self.is_over = False
        self._latest = -1
        self._rendered: list[bytes] = []
        self._output = new_output(lambda piece: self._rendered.append(bytes(piece)))
        self._form, self._mark, self._refuse = form, mark, refuse
        self._is_stopped = False
        self._pieces = self._read(DirectoryReader(directory, form.printing, buffer_size=SMALL_BUFFER_SIZE))

    def fill(self) -> None:
        """Read until there is a record, or the end."""
        while not self.texts and not self.is_over:
            piece = next(self._pieces, None)
            self.is_over = piece is None
            if piece:
                parts = [text.partition(TIME_END) for text in piece]
                self.times = list(accumulate((int(time) for time, _, _ in parts), max, initial=self._latest))[1:]
                self.texts = [text for _, _, text in parts]
                self._latest = self.times[-1]

    def cut(self, count: int) -> tuple[list[int], list[bytes]]:
        """Remove and return the first records."""
        cut = self.times[:count], self.texts[:count]
        del self.times[:count], self.texts[:count]
        return cut

    def stop(self) -> None:
        """Stop reading, but report the problems so far."""
        self._is_stopped = True
        for _ in self._pieces:
            pass

    def _read(self, reader: DirectoryReader) -> Iterator[list[bytes]]:
        """Yield the records' texts, a time before each, piece by piece."""
        try:
            for path in reader.logs():
                if self._is_stopped:
                    return
                try:
                    yield from self._read_log(path, reader)
                except OpenError as error:
                    self._refuse(error)
        except OpenError as error:  # an error of the directory
            self._refuse(error)

    def _read_log(self, path: StrPath, reader: DirectoryReader) -> Iterator[list[bytes]]:
        """Render the records of a log, each after the mark and its time; note its problems."""
        form, log = self._form, self._form.rendering(path)
        program = marked_program(log.rendering.program, self._mark, form.merged_heading(path))
        with reader.open_rendered(path, log.rendering._replace(program=program), self._output) as rendered:
            for damage in rendered.events():
                if damage is not None:
                    form.damage(damage)
                    continue
                self._output.flush()
                _, *texts = b"".join(self._rendered).split(self._mark)
                self._rendered.clear()
                yield texts
                if self._is_stopped:
                    break
        form.note_problems(path, log, rendered.summary)


def _print(streams: list[_MergedStream], limit: int | None, write: Callable[[bytes], object]) -> None:
    """Print records by timestamp; of equal timestamps, records of an earlier stream come first."""
    while limit != 0:
        for stream in streams:
            stream.fill()
        streams = [stream for stream in streams if stream.texts]
        if not streams:
            return
        texts = _first_texts(streams)[:limit]
        write(b"".join(texts))
        limit = None if limit is None else limit - len(texts)
    for stream in streams:
        stream.stop()


def _first_texts(streams: Sequence[_MergedStream]) -> list[bytes]:
    """Remove and return all records that no later record of any stream can precede, in order.

    One stream is empty afterwards.
    """
    ends = [(stream.times[-1], number) for number, stream in enumerate(streams) if not stream.is_over]
    times: list[int] = []
    texts: list[bytes] = []
    for number, stream in enumerate(streams):
        count = len(stream.times)
        if ends:
            time, last = min(ends)
            count = (bisect_right if number <= last else bisect_left)(stream.times, time)
        more_times, more_texts = stream.cut(count)
        times += more_times
        texts += more_texts
    if len(streams) == 1:
        return texts
    return [texts[place] for place in sorted(range(len(texts)), key=times.__getitem__)]
