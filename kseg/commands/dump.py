"""`kseg dump`: prints the contents of files, like Kafka's DumpLogSegments."""

import click

from kseg.commands.inputs import paths_in
from kseg.commands.options.command import CsvOptions, GivenSelection, RedactOptions, command, is_given
from kseg.dump.files import dump_files
from kseg.dump.options import KCAT, DumpOptions, sent_selection
from kseg.layouts.release_lines import INTERNAL_DECODERS
from kseg.log.selection import PartitionChoice
from kseg.named_tuple import NamedTuple
from kseg.output.progress import Talk
from kseg.releases import parse_release
from kseg.system.placed_path import StrPath
from kseg.times import parse_zone


class ToolDecoders(NamedTuple):
    """The options for Kafka's decoders of internal topics."""

    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    remote_log_metadata_decoder: bool
    share_group_state_decoder: bool

    @property
    def internal_decoder(self) -> str | None:
        """The first given option, without dashes."""
        given = self._asdict()
        return next((name for name in INTERNAL_DECODERS if given[name.replace("-", "_")]), None)


class DumpArguments(NamedTuple):
    """The printed contents, in the words of the command line, and the printed messages."""

    paths: tuple[str, ...]
    files: tuple[StrPath, ...]
    like: str | None
    fields: str | None
    merge: str | None
    talk: Talk
    verbose: bool
    choice: PartitionChoice
    selected: GivenSelection
    redacting: RedactOptions
    decoders: ToolDecoders
    csv: CsvOptions
    options: DumpOptions


@command(DumpArguments)
def dump(given: DumpArguments) -> None:
    """Print log segments, indexes, snapshots and checkpoints.

    Use `dump` to print Kafka's files, or to select records from a disk. Text output has the same lines as
    Kafka's DumpLogSegments.

    \b
    Examples:
      kseg dump 00000000000000203000.log --print-data-log
      kseg dump --like 2.8 --files 00000000000000203000.log,00000000000000203000.index
      kseg dump -o json --only records orders-0/ | jq .value
      kseg dump orders-0/ --from-time '2026-11-01 03:00' --to-time -1h --key customer-7 -o table
      kseg dump disk1 disk2 --topic orders --from-time -2h --to-time -1h --key customer-7 --merge time -o table
      kseg dump orders-0/ --tail 10 --follow --template '{offset} {time} {key} {value}'
      kseg dump orders-0/ -o json --redact keys --redact values
      kseg dump orders-0/ --value-decoder avro --schema-registry _schemas-0/ -o json
      kseg dump support.tar.gz/orders-0 --shallow
      kseg dump bucket/zstd-0 -o json | jq .offset
      kseg dump -o kcat saved/orders-0 >restore.sh
      cat 00000000000000203000.log | kseg dump -

    PATHS are files, directories, or globs in quotes; by default the current directory. An archive (.tar, .tar.gz,
    .tar.zst, .zip) works like a directory, and a single .log.gz or .index.zst like the file in it. - is standard input.
    kseg unpacks archives and standard input into TMPDIR. It reads a bucket such as s3://… in place; bucket/orders-0 is
    a partition in it. See docs/how-to/buckets.md.

    If PATHS have several replicas of a partition, `dump` prints the one that the cluster continued with; --all-replicas
    prints each. A file or a single partition directory is always printed.

    With a selection, kseg reads only parts that may match. It uses file names, indexes (which it checks), and headers
    of batches.

    Decoders are string, bytes, hex, base64, int32, int64, double, uuid, json, json-pretty (indented in text), msgpack,
    avro, protobuf, auto, and your own module:callable, which gets bytes and headers. With -o json and -o table,
    internal topics are decoded automatically.

    -o kcat is a shell script. It sends each record to the topic and partition of its directory, in order, with its key,
    value and headers. It omits control records, uncommitted records (unless you give --isolation), internal topics
    (unless --topic names them), and directories that a broker put aside, such as -delete, -future or -stray. kcat can't
    send timestamps, nor every record; stderr lists these records.

    --merge time merges up to 256 partitions by timestamp, for -o text, json, csv and table and for --template. If
    timestamps are equal, records follow the order of PATHS. The records of a partition stay in offset order: one
    without a timestamp, or with an earlier one than its predecessor, comes right after it. --limit counts merged
    records, --tail the records of each partition.
    """
    paths, files, like = given.paths, given.files, given.like
    if like is not None and not paths and not files:
        raise click.UsageError("--like needs files, as Kafka's tool does; specify --files FILE,…")
    if files and not any(name for names in files for name in paths_in(names)):
        raise click.UsageError("--files is empty; specify --files FILE,…")
    named = [*paths, *(name for names in files for name in paths_in(names) if name)]
    options, selection = given.options, given.selected.selection()
    if options.output == KCAT:
        selection = sent_selection(selection, has_isolation=is_given("isolation"))
    wanted = options._replace(
        like=None if like is None else parse_release(like),
        internal_decoder=given.decoders.internal_decoder,
        zone=parse_zone(given.selected.zone),
        csv=given.csv.style,
        selection=selection,
        redaction=given.redacting.redaction(),
        fields=tuple(name for name in (given.fields or "").split(",") if name),
        has_summary=not given.talk.is_quiet,
        is_merged=given.merge is not None,
        choice=given.choice,
        is_verbose=given.verbose,
    )
    dump_files(named or ["."], wanted, given.talk)
