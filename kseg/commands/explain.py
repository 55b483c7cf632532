"""`kseg explain`: the bytes of a file read aloud, or a format's table."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import color_option
from kseg.commands.parameters import LARGEST_LONG, Number, long_number
from kseg.errors import UsageError
from kseg.explain import Field, Item, explain_file
from kseg.explain.tables import FORMATS, format_page, format_rows, whole_page
from kseg.log.partition.log_dir import find_partitions
from kseg.output.explain import html_page, item_objects, svg_picture, write_items
from kseg.output.json_lines import write_json, write_json_by_pieces
from kseg.output.stdout import flush_stdout, write_stdout
from kseg.output.talk import talk


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--offset", type=long_number(), help="Only the batch that holds this offset.")
@click.option("--position", type=long_number(), help="Only what holds the byte at this position.")
@click.option("--batch", type=Number(0, LARGEST_LONG - 1), help="Only this batch, entry or line; the first is 0.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "html", "svg"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
@click.option("--format", "name", type=click.Choice([*FORMATS, "all"]), help="The table of a format; needs no file.")
@color_option
@reads_archives("path")
@click.pass_context
def explain(
    command: click.Context,
    path: Path | None,
    offset: int | None,
    position: int | None,
    batch: int | None,
    output: str,
    name: str | None,
    color: bool | None,
) -> None:
    """Read bytes aloud: each field with its position, bytes, value and meaning.

    \b
    Examples:
      kseg explain 00000000000000203000.log --batch 0
      kseg explain 00000000000000203000.log --offset 203500 -o html > batch.html
      kseg explain 00000000000000203000.index --position 16
      kseg explain --format record-batch

    PATH is a log, an index, a snapshot, a checkpoint or any other file that `kseg dump` reads. Inside compressed
    batches positions are those in what was decompressed. Ends with 1 where something is wrong with the bytes.

    There is no --redact: bytes are shown as they are. `kseg build --redact` makes a segment that can be handed on.
    """
    if name is not None:
        _write_format(name, output)
        return
    if path is None:
        raise UsageError("give a file, or --format")
    if path.is_dir():
        next(find_partitions([path]), None)  # which tells if there is nothing
        raise UsageError("is a directory: give a file in it", path)
    if sum(choice is not None for choice in (offset, position, batch)) > 1:
        raise UsageError("give one of --offset, --position, --batch")
    seen = _Seen(_chosen(explain_file(path), offset, position, batch))
    if output == "text":
        write_items((item for _, item in seen), color=color)
    elif output == "json":
        for number, item in seen:
            for members in item_objects(item, number, str(path)):
                write_json_by_pieces(members)
    elif output == "html":
        for piece in html_page(item for _, item in seen):
            write_stdout(piece.encode())
    else:
        write_stdout(svg_picture((item for _, item in seen), path.name).encode())
    flush_stdout()
    is_asked = offset is not None or position is not None or batch is not None
    if is_asked and not seen.count:
        talk(f"kseg: {path}: nothing like that is in the file")
    command.exit(int(seen.is_wrong or (is_asked and not seen.count)))


class _Seen:
    """Items on their way to the output, and whether something is wrong with one of them."""

    def __init__(self, items: Iterator[tuple[int, Item]]) -> None:
        self._items = items
        self.count = 0
        self.is_wrong = False

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        for number, item in self._items:
            self.count += 1
            self.is_wrong |= item.problem is not None or any(map(_is_wrong, item.fields))
            yield number, item


def _is_wrong(field: Field) -> bool:
    inside = (*field.children, *field.body)
    return field.problem is not None or any(map(_is_wrong, inside))


def _chosen(
    items: Iterator[Item], offset: int | None, position: int | None, batch: int | None
) -> Iterator[tuple[int, Item]]:
    numbered = enumerate(items)
    if batch is not None:
        return islice(numbered, batch, batch + 1)
    if position is not None:
        return (each for each in numbered if each[1].position <= position < each[1].position + each[1].size)
    if offset is not None:
        return islice((each for each in numbered if _holds(each[1], offset)), 1)
    return numbered


def _holds(item: Item, offset: int) -> bool:
    """Whether a batch has the offset; one whose first isn't known has all up to its last."""
    if item.last_offset is None or offset > item.last_offset:
        return False
    return item.first_offset is None or offset >= item.first_offset


def _write_format(name: str, output: str) -> None:
    if output == "json":
        for each in FORMATS if name == "all" else (name,):
            for row in format_rows(each):
                write_json({"format": each, **row._asdict()})
    elif output == "text":
        page = whole_page() if name == "all" else format_page((name,))
        write_stdout(page.encode())
    else:
        raise UsageError("--format goes with -o text or json")
    flush_stdout()
