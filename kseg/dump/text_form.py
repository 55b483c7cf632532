"""Text in the form of Kafka's tool: a log's first line, batches, records and trailing bytes; entries of other files."""

from typing import TYPE_CHECKING

from kseg.dump.decoders import InternalDecoder, class_decoder, control_json
from kseg.dump.forms import Form, LogRendering, Printing, absolute_path
from kseg.dump.log_steps import LogSummary, Rendering, new_output
from kseg.errors import plural
from kseg.formats.codes import TAIL_KINDS
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.layouts import release_lines as layout
from kseg.layouts.programs import DOCUMENTED, LogOptions, documented_program, release_program
from kseg.layouts.release_lines import deprecated_class_lines
from kseg.layouts.template import DUMPING, NAMES_UNKNOWN_FILES
from kseg.releases import value_in
from kseg.system.placed_path import StrPath, as_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.dump.options import DumpOptions
    from kseg.kernel.contract import Decode
    from kseg.kernel.entry_points import Output
    from kseg.reading.blocks import Damage


class TextForm(Form):
    """Prints logs as lines of text, in the layout of the documentation or of the release given by --like."""

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._heads: StrPath | None = None
        self._selected = new_output(self._write_selected)

    def rendering(self, path: StrPath) -> LogRendering:
        """Return the rendering of the lines of a log."""
        options, decode = self.options, _decoder(self.options)
        rendering = _rendering(options, decode)
        has_decoders = (options.key_decoder, options.value_decoder, options.redaction) != (None, None, None)
        if not rendering.is_deep or not has_decoders:
            return LogRendering(rendering)
        from kseg.decode.record_decoders import record_decoder

        decoder = record_decoder(options.decoding, path)
        return LogRendering(rendering._replace(decode=decoder or decode), decoder)

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Print the heading of a log.

        A followed log gets it once; with a selection it is printed only before selected data.
        """
        if not is_continued:
            self._heads = path
        if self.options.like is not None or self.options.selection.is_everything:
            self._print_heading()
            return self.printing.output
        return self._selected

    def _write_selected(self, piece: memoryview) -> None:
        self._print_heading()
        self.printing.output.write(bytes(piece))

    def damage(self, damage: "Damage") -> None:
        """Print the selected data before a damage."""
        self._selected.flush()

    def _print_heading(self) -> None:
        """Print the heading of a log, unless it is printed already."""
        if self._heads is None:
            return
        path, self._heads = self._heads, None
        self._print_path(path)
        like = self.options.like
        if like is not None:
            for line in deprecated_class_lines(self.options.key_decoder_class, self.options.value_decoder_class, like):
                self.printing.line(line)
        self.printing.line(_first_line(path, self.options))

    def _print_path(self, path: StrPath) -> None:
        self.printing.line(DUMPING.format(path=self.printing.shown(path)))

    def pass_over(self, path: StrPath) -> None:
        """Report that a file of an unknown kind isn't printed, as a release does."""
        like = self.options.like
        if like is not None and not value_in(like, NAMES_UNKNOWN_FILES):
            return
        if like is not None:
            self._print_path(path)
            self.printing.output.flush()
        super().pass_over(path)

    def merged_heading(self, path: StrPath) -> bytes:
        """Return the record's partition."""
        from kseg.layouts.record_columns import log_place

        place = log_place(path)
        return f"topic: {place['topic']} partition: {place['partition']} ".encode()

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Print the count of bytes after the last batch, as the tool counts them."""
        self._selected.flush()
        if self._heads is not None:
            return
        if self.options.max_bytes is None and summary.damages and summary.damages[-1].kind in TAIL_KINDS:
            name = self.printing.shown(as_path(path).name)
            self.printing.line(layout.TRAILING_BYTES.format(size=summary.damages[-1].size, name=name))

    def note_problems(self, path: StrPath, log: LogRendering, summary: LogSummary) -> None:
        """Note the problems of a log, and undecoded records of an internal topic."""
        if summary.gaps and self.options.like is not None:
            self.problems.reports.gaps.setdefault(absolute_path(path), []).extend(summary.gaps)
        super().note_problems(path, log, summary)
        decode = log.rendering.decode
        if isinstance(decode, InternalDecoder) and decode.failures:
            self.problems.is_wrong = True
            self.problems.lines.append(_failures_line(path, decode.failures))

    def print_file(self, path: StrPath, kind: FileKind) -> None:
        """Print the entries of a file."""
        self._print_path(path)
        from kseg.dump import entry_lines, index_lines

        printers: dict[FileKind, Callable[[StrPath, Printing], None]] = {
            FileKind.OFFSET_INDEX: index_lines.print_offset_index,
            FileKind.TIME_INDEX: index_lines.print_time_index,
            FileKind.TRANSACTION_INDEX: entry_lines.print_transaction_index,
            FileKind.PRODUCER_SNAPSHOT: entry_lines.print_producer_snapshot,
        }
        printers.get(kind, entry_lines.print_entries)(path, self.printing)


def _decoder(options: "DumpOptions") -> "Decode | None":
    if options.internal_decoder is not None:
        return InternalDecoder(options.internal_decoder, options.release)
    if options.key_decoder_class is None and options.value_decoder_class is None:
        return None
    return class_decoder(options.key_decoder_class, options.value_decoder_class)


def _failures_line(path: StrPath, failures: list[tuple[int, str]]) -> str:
    offset, reason = failures[0]
    told = plural(
        len(failures), "record can't be decoded and is shown raw", "records can't be decoded and are shown raw"
    )
    return f"kseg: {path}: {told}; the first at offset {offset}: {reason}"


def _first_line(path: StrPath, options: "DumpOptions") -> str:
    name = parse_file_name(path)
    if name.kind is FileKind.METADATA_SNAPSHOT:
        if name.base_offset is None:
            return layout.BOOTSTRAP_SNAPSHOT
        return layout.SNAPSHOT_END.format(offset=name.base_offset, epoch=name.epoch)
    line = value_in(options.like or DOCUMENTED, layout.STARTING_OFFSET)
    return line.format(offset="?" if name.base_offset is None else name.base_offset)


def _rendering(options: "DumpOptions", decode: "Decode | None") -> Rendering:
    like = options.like
    decodes = decode is not None or options.key_decoder is not None or options.value_decoder is not None
    printing = options.print_data_log or (decodes and value_in(options.release, layout.DECODERS_PRINT))
    if like is None:
        deep = not options.shallow
        program = documented_program(LogOptions(deep, printing, options.skip_record_metadata))
        return Rendering(program, decode, control_json, limit=options.max_decompressed)
    program = release_program(like, LogOptions(options.deep_iteration, printing, options.skip_record_metadata))
    return Rendering(
        program,
        decode,
        control_json,
        gap_rule=value_in(like, layout.GAP_RULE),
        last_offset=value_in(like, layout.OFFSET_BEFORE_FIRST),
        limit=options.max_decompressed,
        as_kafka=True,
    )
