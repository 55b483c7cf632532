"""`kseg rebuild-metadata`: restores a lost controller from a broker's copy of the metadata, in a new directory."""

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from kseg.commands.inputs import new_directory_of
from kseg.commands.options.command import RowOptions, command
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.rewrite.metadata import NewVoter, find_rebuilding, parse_endpoint, write_rebuilt
from kseg.text.metadata import rebuilding_notes, write_rebuilding
from kseg.times import parse_zone


class RebuildOptions(NamedTuple):
    """The new controller, its directory, and the accepted losses."""

    paths: tuple[Path, ...]
    directory: Path | None
    node_id: int
    endpoint: str | None
    dry_run: bool
    accept_loss: bool
    zone: str
    talk: Talk
    rows: RowOptions


@command(RebuildOptions)
def rebuild_metadata(options: RebuildOptions) -> None:
    """Restore a lost controller quorum from a broker's copy.

    Use `rebuild-metadata` if all controllers are lost. It makes a new controller's directory from the metadata that
    stopped brokers have, which never change. Don't use it while a controller of the cluster may come back.

    \b
    Examples:
      kseg rebuild-metadata data1/ --node-id 3001 --dry-run
      kseg rebuild-metadata data1/ --node-id 3001 --to controller/
      kseg rebuild-metadata dynamic/ --node-id 3001 --endpoint CONTROLLER://10.0.0.7:9093 --to controller/

    PATHS are the log directories of stopped brokers, or their parents. Specify the directories of all surviving
    brokers. kseg uses the most recent copy, and fills its losses from the others. It shows how far the others are
    behind, and partitions on the disks that are newer. The new controller is the only voter. A real controller starts
    on the directory, and brokers return to it.

    Metadata that no surviving broker received is lost. docs/how-to/metadata.md says what to expect, what to do, and
    when not to do it. The exit status is 1 if a partition is newer than the copy, or if damage cuts the copy; nothing
    is written then without --accept-loss.
    """
    paths, directory, talk = options.paths, options.directory, options.talk
    new = NewVoter(options.node_id, None if options.endpoint is None else parse_endpoint(options.endpoint))
    target = new_directory_of(directory, dry_run=options.dry_run, beside=paths)
    rebuilding = find_rebuilding(paths, new, talk.refuse)
    is_allowed = options.accept_loss or not rebuilding.is_behind
    with target if is_allowed else nullcontext() as unfinished:
        if unfinished is not None:
            write_rebuilt(rebuilding.planned, new, unfinished)
    write_rebuilding(rebuilding, RowWriter(options.rows.form(parse_zone(options.zone))))
    flush_stdout()
    for text in rebuilding_notes(rebuilding, directory if unfinished is not None else None):
        talk.note(text)
    if not is_allowed and not options.dry_run:
        talk.warn(
            f"{directory} isn't written: it would lose something, see docs/how-to/metadata.md; --accept-loss writes it"
        )
    talk.end_with(rebuilding.is_behind)
