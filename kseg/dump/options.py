"""Options of a dump, and the rules for combining them."""

from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from kseg.codecs.limits import DEFAULT_LIMIT
from kseg.dump.decoders import class_decoder
from kseg.errors import UsageError
from kseg.layouts.release_lines import OPTION_RELEASES
from kseg.log.selection import EVERY_PARTITION, EVERYTHING, PartitionChoice, Selection
from kseg.named_tuple import NamedTuple
from kseg.output.csv_style import PLAIN_CSV, CsvStyle
from kseg.releases import NEWEST, Release

if TYPE_CHECKING:
    from pathlib import Path

    from kseg.cluster.schemas_topic import SchemasTopic
    from kseg.decode.record_decoders import Decoding
    from kseg.redaction import Redaction


KCAT = "kcat"
"""Form of output for kcat."""
DECODING_OUTPUTS = ("json", "table")
"""Forms of output that decode internal topics by default."""
MAX_MESSAGE_SIZE = 5 * 1024 * 1024
"""Kafka's default of --max-message-size."""


class DumpOptions(NamedTuple):
    """Kafka's options and kseg's; the defaults are those of the command line.

    `like` is the release whose output is printed; None for kseg's own: the documentation's lines for logs, the latest
    release's for other files. `internal_decoder` is the option of an internal topic's decoder, without dashes. `output`
    is text, json, csv, table or kcat; `fields` are names of columns, `template` a line for each record. The decoders
    are those of kseg.decode.values; with `is_strict`, undecoded values are wrong data. `redaction` is applied to
    records before they are printed. `csv`: the style of CSV. `wide`: nothing in a table is cut. `zone` is the zone of
    times in ISO 8601. `choice`: the partitions whose files are printed. `is_merged`: records of all logs by timestamp.
    `has_summary`: whether JSON ends with a summary of the file. `all_replicas`: each copy of a partition is printed.
    `is_verbose`: for each partition, the used copy is reported. `processes`: the most processes that
    share the work.
    """

    like: Release | None = None
    shallow: bool = False
    deep_iteration: bool = False
    print_data_log: bool = False
    skip_record_metadata: bool = False
    verify_index_only: bool = False
    index_sanity_check: bool = False
    max_message_size: int = MAX_MESSAGE_SIZE
    max_bytes: int | None = None
    key_decoder_class: str | None = None
    value_decoder_class: str | None = None
    internal_decoder: str | None = None
    output: str = "text"
    only: str | None = None
    max_decompressed: int = DEFAULT_LIMIT
    selection: Selection = EVERYTHING
    fields: tuple[str, ...] = ()
    template: str | None = None
    key_decoder: str | None = None
    value_decoder: str | None = None
    schema: "Path | None" = None
    message: str | None = None
    schema_registry: "Path | None" = None
    is_strict: bool = False
    color: bool | None = None
    redaction: "Redaction | None" = None
    csv: CsvStyle = PLAIN_CSV
    wide: bool = False
    zone: tzinfo = UTC
    choice: PartitionChoice = EVERY_PARTITION
    is_merged: bool = False
    has_summary: bool = True
    all_replicas: bool = False
    is_verbose: bool = False
    processes: int = 1

    @property
    def may_share_work(self) -> bool:
        """True if processes may render the logs: records depend on no earlier ones, nor on a user's own code."""
        has_own_code = any(":" in (name or "") for name in (self.key_decoder, self.value_decoder))
        return self.selection.is_everything and not has_own_code

    @property
    def is_of_records(self) -> bool:
        """True if rows of records are requested, not lines about files."""
        has_rows = bool(self.fields) or self.template is not None
        return self.only is not None or self.output in ("csv", "table", KCAT) or has_rows

    @property
    def takes_only_logs(self) -> bool:
        """True if only logs of directories are printed."""
        return self.is_of_records or self.is_merged or not self.selection.is_everything

    @property
    def sends_records(self) -> bool:
        """True if the output sends the records to a cluster."""
        return self.output == KCAT

    @property
    def counts_batches(self) -> bool:
        """True if --limit and --tail count batches, since no records are printed."""
        return self.shallow or self.only == "batches"

    @property
    def decoding(self) -> "Decoding":
        """The decoding of records."""
        from kseg.decode.record_decoders import Decoding

        decodes_internal = self.output in DECODING_OUTPUTS and not (self.key_decoder_class or self.value_decoder_class)
        return Decoding(
            self.key_decoder,
            self.value_decoder,
            self.schema,
            self.message,
            self._schemas_topic(),
            None if self.output == "text" else self.internal_decoder,
            decodes_internal=decodes_internal,
            redaction=self.redaction,
            keeps_raw=self.output == "json",
        )

    def _schemas_topic(self) -> "SchemasTopic | None":
        if self.schema_registry is None:
            return None
        from kseg.cluster.schemas_topic import SchemasTopic

        return SchemasTopic(self.schema_registry)

    @property
    def release(self) -> Release:
        """The release whose lines are used for files other than logs."""
        return self.like or NEWEST


def sent_selection(selection: Selection, *, has_isolation: bool) -> Selection:
    """Return the part of a selection to send to a cluster: no control records, and only committed records.

    has_isolation: the user chose an isolation level, which then applies. Raises UsageError if control records are
    requested.
    """
    if selection.is_control:
        raise UsageError(
            f"--control can't be used with -o {KCAT}, since only brokers write control records; omit one of them"
        )
    return selection._replace(is_control=False, is_committed=selection.is_committed or not has_isolation)


def check_options(options: DumpOptions, talk: Callable[[str], None]) -> None:
    """Report options that the named release doesn't have. Raises UsageError for options that exclude each other."""
    if options.key_decoder_class or options.value_decoder_class:
        class_decoder(options.key_decoder_class, options.value_decoder_class)
    if options.output != "text" and options.like is not None:
        raise UsageError(f"--like prints only text; omit --like or -o {options.output}")
    options.csv.check(options.output)
    if options.only is not None and options.output != "json":
        raise UsageError("--only needs JSON; add -o json, or use --shallow for batches")
    _check_rows(options)
    _check_redaction(options)
    _check_merging(options)
    if options.like is None:
        return
    for name, (option, since) in OPTION_RELEASES.items():
        if (name == options.internal_decoder or getattr(options, name, None)) and options.like.numbers < since:
            talk(f"kseg: {option}: Kafka {options.like} has no such option, so kseg uses it as in {Release(since)}")


def _check_merging(options: DumpOptions) -> None:
    """Raise UsageError for options that print data without a timestamp."""
    if not options.is_merged:
        return
    if options.like is not None or options.shallow or options.only == "batches" or options.output == KCAT:
        raise UsageError(f"--merge prints only records; omit --like, --shallow, --only batches and -o {KCAT}")
    if options.selection.is_followed:
        raise UsageError("--merge can't order records that will be written later; omit --follow")
    if options.internal_decoder is not None and options.output == "text":
        raise UsageError("--merge doesn't decode internal topics as text; add -o json or -o table")


def _check_redaction(options: DumpOptions) -> None:
    """Raise UsageError for options that would read redacted data."""
    parts = () if options.redaction is None else options.redaction.parts
    is_read = {
        "keys": options.key_decoder or options.internal_decoder or options.key_decoder_class,
        "values": options.value_decoder or options.internal_decoder or options.value_decoder_class,
        "headers": options.selection.headers,
    }
    for part in parts:
        if is_read[part]:
            what = "selected by" if part == "headers" else "decoded"
            raise UsageError(f"--redact {part}: redacted parts can't be {what}; omit one of the options")
    if {"keys", "values"} & set(parts) and (options.key_decoder_class or options.value_decoder_class):
        raise UsageError(
            "--redact can't be used with Kafka's decoder classes; use --key-decoder and --value-decoder instead"
        )


def _check_rows(options: DumpOptions) -> None:
    """Raise UsageError for options of records and rows that exclude each other."""
    has_rows = bool(options.fields) or options.template is not None
    decodes = options.key_decoder is not None or options.value_decoder is not None
    if options.like is not None and (has_rows or decodes or not options.selection.is_everything):
        raise UsageError("--like prints complete files; omit --like, or omit selection, fields and decoders")
    if options.template is not None and (options.fields or options.output != "text"):
        raise UsageError("--template prints a line of text; omit --fields and -o")
    if options.output == KCAT and (options.fields or options.shallow or decodes or options.internal_decoder):
        raise UsageError(f"-o {KCAT} prints records unchanged; omit --fields, --shallow and decoders")
    if (options.shallow or options.only == "batches") and options.selection.looks_into_records:
        raise UsageError("--shallow and --only batches don't read records; omit them to select by records")
    if options.fields or options.template is not None:
        from kseg.layouts.record_columns import check_fields, template_program

        check_fields(options.fields)
        template_program(options.template or "", "")
    if decodes and (options.internal_decoder or options.key_decoder_class or options.value_decoder_class):
        raise UsageError("--key-decoder and --value-decoder can't be used with other decoders; omit the others")
