"""`kseg dump`: prints what files hold, as Kafka's DumpLogSegments does."""

import sys

import click

from kseg.dump.files import dump_files
from kseg.dump.log import new_output
from kseg.dump.options import MAX_MESSAGE_SIZE, DumpContext, DumpOptions
from kseg.dump.reports import Reports
from kseg.codecs import DEFAULT_LIMIT
from kseg.releases import parse_release


@click.command()
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--files", multiple=True, metavar="FILE,…", help="Files to print, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print keys and payloads.")
@click.option("--deep-iteration", is_flag=True, help="Print records, also of compressed batches.")
@click.option("--shallow", is_flag=True, help="Print a line per batch only.")
@click.option("--like", metavar="RELEASE", help="Print what this release of Kafka prints: 0.8 … 4.3, latest.")
@click.option("--skip-record-metadata", is_flag=True, help="Print only keys and payloads of records.")
@click.option("--verify-index-only", is_flag=True, help="Only check indexes against their log.")
@click.option("--index-sanity-check", is_flag=True, help="Only check what a broker checks of an index at start.")
@click.option("--max-message-size", type=int, default=MAX_MESSAGE_SIZE, show_default=True, help="Largest message.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Print only batches wholly in the first bytes.")
@click.option("--key-decoder-class", is_flag=False, flag_value="StringDecoder", help="Class that decodes keys.")
@click.option("--value-decoder-class", is_flag=False, flag_value="StringDecoder", help="Class that decodes values.")
@click.option("--max-decompressed", type=int, default=DEFAULT_LIMIT, help="Largest decompressed batch, in bytes.")
@click.option("--offsets-decoder", is_flag=True, help="Decode __consumer_offsets.")
@click.option("--transaction-log-decoder", is_flag=True, help="Decode __transaction_state.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Decode __cluster_metadata.")
@click.option("--remote-log-metadata-decoder", is_flag=True, help="Decode __remote_log_metadata.")
@click.option("--share-group-state-decoder", is_flag=True, help="Decode __share_group_state.")
@click.pass_context
def dump(command: click.Context, paths: tuple[str, ...], files: tuple[str, ...], like: str | None, **options) -> None:
    """Print what log segments, indexes and snapshots hold."""
    given = [*paths, *(name for names in files for name in names.split(",") if name)]
    release = parse_release(like) if like else None
    decoders = [option.replace("_", "-") for option in INTERNAL_DECODERS if options.pop(option)]
    dump_options = DumpOptions(like=release, internal_decoder=decoders[0] if decoders else None, **options)
    output = new_output(sys.stdout.buffer.write)
    context = DumpContext(dump_options, output, talk, Reports(dump_options.release))
    dump_files(given, context)
    sys.stdout.buffer.flush()
    command.exit(2 if context.failed else int(context.found_wrong))


INTERNAL_DECODERS = (
    "offsets_decoder",
    "transaction_log_decoder",
    "cluster_metadata_decoder",
    "remote_log_metadata_decoder",
    "share_group_state_decoder",
)
"""Kafka takes the first of several."""


def talk(line: str) -> None:
    """A line on stderr."""
    click.echo(line, err=True)
