"""`kseg dump`: prints the contents of files, like Kafka's DumpLogSegments."""

from typing import NamedTuple

import click

from kseg.commands.inputs import paths_in
from kseg.commands.options.command import CsvOptions, GivenSelection, RedactOptions, command, is_given
from kseg.dump.files import dump_files
from kseg.dump.options import KCAT, DumpOptions, sent_selection
from kseg.layouts.release_lines import INTERNAL_DECODERS
from kseg.log.selection import PartitionChoice
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

    Lines of text are those of Kafka's own DumpLogSegments tool.

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

    Decoders are string, bytes, hex, base64, int32, int64, double, uuid, json, json-pretty (indented in text), msgpack,
    avro, protobuf, auto, and your own module:callable, which gets bytes and headers. With -o json and -o table,
    internal topics are decoded automatically.

    -o kcat is a shell script: each record goes to the topic and partition of its directory, in order, with its key,
    value and headers, null or empty as they are. It has no control records and, unless --isolation says otherwise, only
    what was committed. kcat can't send times, and not every record; stderr names these. Of a log directory it leaves
    out internal topics that --topic doesn't name, and what a broker put aside (-delete, -future, -stray, .deleted, …).

    PATHS are files, directories, or globs in quotes; by default the current directory. A .tar, .tar.gz, .tar.zst or
    .zip is used like a directory, a single .log.gz or .index.zst like the file in it: kseg unpacks what it needs into
    TMPDIR. - is standard input, which is kept there meanwhile. A bucket of tiered storage, s3://… for example, is read
    where it lies; bucket/orders-0 is a partition in it (docs/how-to/buckets.md).

    Of several copies of a partition that PATHS have, the one is printed that the cluster went on with; --all-replicas
    prints each. A file, and a partition's directory that is given alone, are printed as they are.

    With a selection, kseg reads only what may match: it uses the names of files, indexes (which it checks), and headers
    of batches.

    --merge time prints the records of up to 256 partitions in the order of their times, as -o json, csv, table, text,
    or --template; of equal times those of the partition that was given first. The records of a partition stay in the
    order of their offsets: one whose time is before that of the record before it comes right after that one, as does
    one without a time. --limit counts the merged records, --tail those of each partition.
    """
    paths, files, like = given.paths, given.files, given.like
    if like is not None and not paths and not files:
        raise click.UsageError("with --like you must name the files, as with Kafka's tool: --files FILE,…")
    if files and not any(name for names in files for name in paths_in(names)):
        raise click.UsageError("--files names no file: --files FILE,…")
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
