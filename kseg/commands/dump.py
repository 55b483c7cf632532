"""`kseg dump`: prints the contents of files, like Kafka's DumpLogSegments."""

from typing import NamedTuple

import click
from click.core import ParameterSource

from kseg.codecs.bodies import DEFAULT_LIMIT
from kseg.commands.inputs import paths_in, reads_archives
from kseg.commands.option_groups import GivenSelection, decoder_options, partition_options, selection_options
from kseg.commands.options import (
    LARGEST_INT,
    RedactOptions,
    Size,
    all_matching,
    color_option,
    csv_safe_option,
    option_values,
    quiet_option,
    raw_option,
    redact_options,
    size_text,
    verbose_copies_option,
)
from kseg.dump.files import dump_files
from kseg.dump.options import KCAT, MAX_MESSAGE_SIZE, DumpOptions, sent_selection
from kseg.layouts.release_lines import INTERNAL_DECODERS
from kseg.releases import parse_release
from kseg.system.placed_path import StrPath
from kseg.times import parse_zone

_LARGEST_BODY = 1 << 40


class ToolDecoders(NamedTuple):
    """The options for Kafka's decoders of internal topics."""

    offsets_decoder: bool
    transaction_log_decoder: bool
    cluster_metadata_decoder: bool
    remote_log_metadata_decoder: bool
    share_group_state_decoder: bool

    @property
    def internal_decoder(self) -> str | None:
        """The first of them that is given, without dashes."""
        given = self._asdict()
        return next((name for name in INTERNAL_DECODERS if given[name.replace("-", "_")]), None)


class DumpArguments(NamedTuple):
    """What is printed, in the words of the command line, and what is said."""

    paths: tuple[str, ...]
    files: tuple[StrPath, ...]
    like: str | None
    fields: str | None
    merge: str | None
    quiet: bool
    progress: bool | None


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(), callback=all_matching)
@click.option("--files", multiple=True, metavar="FILE,…", help="Files to print, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print keys and payloads.")
@click.option("--shallow", is_flag=True, help="Print a line per batch, none per record.")
@click.option("--like", metavar="RELEASE", help="Print exactly what this release's tool prints: 0.8 … 4.4, latest.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "csv", "table", KCAT]),
    default="text",
    show_default=True,
    help="Print lines of text, lines of JSON, or records as CSV, as a table, or as a script that kcat sends them with.",
)
@csv_safe_option
@click.option("--fields", metavar="NAME,…", help="Only these fields of records, in this order.")
@click.option("--template", metavar="TEXT", help="A line for each record: '{topic} {partition} {offset} {key}'.")
@click.option(
    "--merge",
    type=click.Choice(["time"]),
    help="Print the records of all partitions by time; in each one the order of offsets stays.",
)
@click.option("--only", type=click.Choice(["records", "batches"]), help="With -o json: only objects of this type.")
@click.option("--deep-iteration", is_flag=True, help="With --like: print records, compressed ones too.")
@click.option("--skip-record-metadata", is_flag=True, help="Of records print only key and payload.")
@click.option("--verify-index-only", is_flag=True, help="Only check indexes against their log.")
@click.option("--index-sanity-check", is_flag=True, help="Only check of an index what a broker checks at start.")
@click.option(
    "--max-message-size",
    type=Size(0, LARGEST_INT),
    default=size_text(MAX_MESSAGE_SIZE),
    show_default=True,
    help="Largest batch to check an index by.",
)
@click.option("--max-bytes", type=Size(0), help="Print only batches that lie in the first bytes.")
@click.option("--key-decoder-class", is_flag=False, flag_value="StringDecoder", help="Kafka's class to decode keys.")
@click.option(
    "--value-decoder-class", is_flag=False, flag_value="StringDecoder", help="Kafka's class to decode values."
)
@decoder_options
@click.option("--strict", "is_strict", is_flag=True, help="End with 1 if a record doesn't decode.")
@partition_options
@selection_options()
@click.option("--all-replicas", is_flag=True, help="Print each copy of a partition, not only the one that answers.")
@redact_options
@click.option("--offsets-decoder", is_flag=True, help="Decode __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Decode __cluster_metadata.")
@click.option("--remote-log-metadata-decoder", is_flag=True, help="Decode __remote_log_metadata.")
@click.option("--share-group-state-decoder", is_flag=True, help="Decode __share_group_state.")
@click.option(
    "--max-decompressed",
    type=Size(1, _LARGEST_BODY),
    default=size_text(DEFAULT_LIMIT),
    show_default=True,
    help="Largest body of a compressed batch.",
)
@quiet_option
@verbose_copies_option
@raw_option
@color_option
@click.option("--progress/--no-progress", default=None, help="A bar on stderr; by itself only on a terminal.")
@reads_archives("paths", "files")
@click.pass_context
@option_values(given=DumpArguments, decoders=ToolDecoders, options=DumpOptions)
def dump(
    command: click.Context,
    selected: GivenSelection,
    redacting: RedactOptions,
    given: DumpArguments,
    decoders: ToolDecoders,
    options: DumpOptions,
) -> None:
    """Print the contents of log segments, indexes, snapshots and checkpoints, like Kafka's own tool.

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
    zone = parse_zone(selected.zone)
    selection = selected.selection()
    if options.output == KCAT:
        is_chosen = command.get_parameter_source("isolation") is not ParameterSource.DEFAULT
        selection = sent_selection(selection, has_isolation=is_chosen)
    wanted = options._replace(
        like=None if like is None else parse_release(like),
        internal_decoder=decoders.internal_decoder,
        zone=zone,
        selection=selection,
        redaction=redacting.redaction(),
        fields=tuple(name for name in (given.fields or "").split(",") if name),
        has_summary=not given.quiet,
        is_merged=given.merge is not None,
    )
    command.exit(dump_files(named or ["."], wanted, quiet=given.quiet, progress=given.progress))
