"""`kseg explain`: explains the bytes of a file, or prints a format's table."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.cluster.cluster import Cluster
from kseg.commands.inputs import reads_archives
from kseg.commands.options import LARGEST_LONG, Number, color_option, long_number, option_values, output_option
from kseg.errors import UsageError
from kseg.explain.items import ItemChoice, SeenItems, explain_file
from kseg.formats.batch import FORMATS
from kseg.output.progress import talk
from kseg.store.location import matching_paths
from kseg.text.explain import write_file, write_format


def _only_match(_: object, __: object, text: str | None) -> Path | None:
    """The path, or the one that a glob matches."""
    if text is None:
        return None
    found = matching_paths(text)
    if len(found) > 1:
        raise UsageError(f"matches {len(found)} paths: `explain` takes one", text)
    return Path(found[0])


class ExplainOptions(NamedTuple):
    """What of a file, or which format, is explained, and how."""

    offset: int | None
    position: int | None
    batch: int | None
    output: str
    name: str | None
    color: bool | None


@click.command()
@click.argument("path", required=False, type=click.Path(), callback=_only_match)
@click.option("--offset", type=long_number(), help="Only the batch that holds this offset.")
@click.option("--position", type=long_number(), help="Only what holds the byte at this position.")
@click.option("--batch", type=Number(0, LARGEST_LONG - 1), help="Only this batch, entry or line; the first is 0.")
@output_option("text", "json", "html", "svg")
@click.option("--grammar", "name", type=click.Choice([*FORMATS, "all"]), help="The table of a format; needs no file.")
@color_option
@reads_archives("path")
@click.pass_context
@option_values(options=ExplainOptions)
def explain(
    command: click.Context,
    path: Path | None,
    options: ExplainOptions,
) -> None:
    """Explain bytes: each field with its position, bytes, value and meaning.

    \b
    Examples:
      kseg explain 00000000000000203000.log --batch 0
      kseg explain 00000000000000203000.log --offset 203500 -o html > batch.html
      kseg explain 00000000000000203000.index --position 16
      kseg explain --grammar record-batch

    PATH is a log, an index, a snapshot, a checkpoint or any other file that `kseg dump` reads. Keys and values of
    internal topics are taken apart too, if the directory has the topic's name. Inside compressed batches, positions
    count the decompressed bytes. The exit status is 1 if something is wrong with the bytes.

    There is no --redact: bytes are shown unchanged. `kseg build --redact` makes a segment that you can share.
    """
    if options.name is not None:
        write_format(options.name, options.output)
        return
    if path is None:
        raise UsageError("give a file, or --grammar")
    if path.is_dir():
        next(Cluster([path]).directories(), None)  # raises an error if there is nothing
        raise UsageError("is a directory: give a file in it", path)
    choice = ItemChoice.of(options.offset, options.position, options.batch)
    seen = SeenItems(choice.chosen(explain_file(path)))
    write_file(path, seen, options.output, options.color)
    is_missing = choice.is_narrow and not seen.count
    if is_missing:
        talk(f"kseg: {path}: there is nothing like that in the file")
    command.exit(int(seen.is_wrong or is_missing))
