"""`kseg build`: records in, a partition's directory out."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.archive.untouched import check_outside
from kseg.commands.build_options import BuildOptions, build_options, has_roll_options
from kseg.commands.options import RedactOptions, new_directory_option, option_values, quiet_option, redact_options
from kseg.errors import UsageError
from kseg.log.build import build_partition
from kseg.output.stdout import flush_stdout, write_lines
from kseg.output.talk import talk
from kseg.output.written import segment_lines
from kseg.system.new_directory import new_directory
from kseg.writer.record_input import STANDARD_INPUT, RecordForm, name_of_input, opened_items


class SourceOptions(NamedTuple):
    """What the source is, and where the partition goes."""

    form: str
    key_separator: str | None
    directory: Path
    quiet: bool


@click.command()
@click.argument("source", default=STANDARD_INPUT, type=click.Path())
@new_directory_option(required=True)
@click.option(
    "--from",
    "form",
    type=click.Choice(["json", "csv", "text"]),
    default="json",
    show_default=True,
    help="Form of SOURCE: JSON lines, CSV whose first line names the columns, or a value per line.",
)
@click.option("--key-separator", help="With --from text: what stands between key and value.")
@build_options
@redact_options
@quiet_option
@click.pass_context
@option_values(options=SourceOptions)
def build(
    command: click.Context,
    source: str,
    made: BuildOptions,
    redacting: RedactOptions,
    options: SourceOptions,
) -> None:
    """Make a partition's directory from records; no broker is needed.

    \b
    Examples:
      seq 1000 | kseg build --from text --to numbers-0
      kseg dump -o json orders-0/ | kseg build --compression zstd:9 --to copy/orders-0
      kseg dump -o json orders-0/ --grep fail --limit 10 | kseg build --to few/orders-0
      kseg dump -o json orders-0/ | kseg build --redact keys --redact values --to shared/orders-0
      kseg build records.jsonl --producer-id 7 --transaction commit --to orders-0

    SOURCE is a file or, by default, standard input. It has JSON lines from `kseg dump -o json`, which become the same
    batches again, reduced to the selected records; or JSON lines with key, value, timestamp and headers, each of which
    may be missing; or CSV; or text. A new segment starts where one did in the source or, if an option for it is given,
    by Kafka's rules. An unknown field in a line is an error.
    """
    keep_segments = not has_roll_options(command)
    batches, partition = made.batch_settings(), made.partition_settings()
    directory = options.directory
    input_form = RecordForm(options.form, options.key_separator, redacting.redaction())
    if input_form.key_separator == "":
        raise UsageError("--key-separator is empty: leave it out for values without keys")
    if input_form.key_separator is not None and options.form != "text":
        raise UsageError("--key-separator needs --from text")
    check_outside(directory, () if source == STANDARD_INPUT else (source,))
    with opened_items(source, input_form) as items, new_directory(directory) as unfinished:
        built = build_partition(
            items,
            unfinished,
            base_offset=made.base_offset,
            batches=batches,
            partition=partition,
            keep_segments=keep_segments,
        )
    for note in built.notes:
        talk(f"kseg: {name_of_input(source)}: line {note.line}: {note.text}")
    if not options.quiet:
        write_lines(segment_lines(built.segments, directory))
    flush_stdout()
