"""`kseg explain`: explains the bytes of a file, or prints a format's table."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.commands.options.command import command
from kseg.errors import UsageError
from kseg.explain.items import ItemChoice, SeenItems, explain_file
from kseg.formats.batch import FORMATS
from kseg.output.progress import Talk
from kseg.text.explain import write_file, write_format

GRAMMARS = (*FORMATS, "all")


class ExplainOptions(NamedTuple):
    """The file position or format to explain, and the output format."""

    path: Path | None
    offset: int | None
    position: int | None
    batch: int | None
    output: str
    name: str | None
    color: bool | None
    talk: Talk


@command(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Explain the bytes of a file, field by field.

    Use `explain` to see each field of a file with its position, bytes, value and meaning. The file never changes.

    \b
    Examples:
      kseg explain 00000000000000203000.log --batch 0
      kseg explain 00000000000000203000.log --offset 203500 -o html > batch.html
      kseg explain 00000000000000203000.index --position 16
      kseg explain --grammar record-batch

    PATH is a log, an index, a snapshot, a checkpoint or any other file that `kseg dump` reads. If the directory has the
    name of an internal topic, its keys and values are explained too. Inside compressed batches, positions count
    decompressed bytes. The exit status is 1 if bytes are invalid.

    There is no --redact: bytes are shown unchanged. To share a segment, make one with `kseg build --redact`.
    """
    if options.name is not None:
        write_format(options.name, options.output)
        return
    path = options.path
    if path is None:
        raise UsageError("specify a file or --grammar")
    if path.is_dir():
        next(Cluster([path]).directories(), None)  # raises an error if there is no file
        raise UsageError("is a directory; specify a file in it", path)
    choice = ItemChoice.of(options.offset, options.position, options.batch)
    seen = SeenItems(choice.choose(explain_file(path)))
    write_file(path, seen, options.output, options.color)
    if path.is_file() and not path.stat().st_size:
        options.talk.note(f"{path}: the file is empty")
    is_missing = choice.is_narrow and not seen.count
    if is_missing:
        asked = (("--offset", options.offset), ("--position", options.position), ("--batch", options.batch))
        given = " ".join(f"{option} {value}" for option, value in asked if value is not None)
        options.talk.warn(f"{path}: nothing in the file matches {given}; `kseg explain {path}` prints all")
    options.talk.end_with(seen.is_wrong or is_missing)
