"""`kseg rebuild-metadata`: a directory for a new controller, from a broker's copy of the metadata, if all are gone."""

from pathlib import Path

import click

from kseg.commands.new_directories import new_directory_of
from kseg.commands.options import (
    color_option,
    new_directory_option,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    zone_option,
)
from kseg.commands.parameters import int_number
from kseg.output.refusals import Refusals
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless
from kseg.times import parse_zone
from kseg.views.rebuild.metadata_copies import metadata_copies
from kseg.views.rebuild.newer_partitions import newer_partitions
from kseg.views.rebuild.rebuilt import NewVoter, parse_endpoint, plan_rebuilt, write_rebuilt
from kseg.views.rebuild.rebuilt_columns import rebuilt_notes, write_rebuilt_rows


@click.command("rebuild-metadata")
@paths_argument
@new_directory_option("The new controller's log directory: it must not exist yet, or be empty.")
@click.option("--node-id", metavar="N", type=int_number(), required=True, help="The new controller's node.id.")
@click.option(
    "--endpoint",
    metavar="NAME://HOST:PORT",
    help="Where the new controller listens; for a dynamic quorum (KIP-853), and only there.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")
@zone_option
@output_option("text", "json", "table")
@raw_option
@quiet_option
@color_option
@click.pass_context
def rebuild_metadata(
    command: click.Context,
    paths: tuple[Path, ...],
    directory: Path | None,
    node_id: int,
    endpoint: str | None,
    dry_run: bool,
    zone: str,
    output: str,
    quiet: bool,
    color: bool | None,
) -> None:
    """Make a controller's directory out of a broker's own copy of the metadata, if all controllers are lost.

    \b
    Examples:
      kseg rebuild-metadata data1/ --node-id 3001 --dry-run
      kseg rebuild-metadata data1/ --node-id 3001 --to controller/
      kseg rebuild-metadata dynamic/ --node-id 3001 --endpoint CONTROLLER://10.0.0.7:9093 --to controller/

    PATHS are log directories of stopped brokers, or parents of them: give those of all surviving brokers. The copy that
    goes furthest is used; how far behind the others are is shown, and which partitions on the disks are newer than it.
    The new controller is the only voter. A real controller starts on the directory, and brokers return to it.

    What no surviving broker had received is lost: docs/metadata.md says what that can be, what to do step by step, and
    when not to do it. Never do it while a controller of the cluster may still come back. The exit status is 1 if
    something is newer than the copy, or if the copy has damage and ends before it.
    """
    refuse, note = Refusals(), note_unless(quiet=quiet)
    new = NewVoter(node_id, None if endpoint is None else parse_endpoint(endpoint))
    with new_directory_of(directory, dry_run=dry_run, beside=paths) as unfinished:
        copies = metadata_copies(paths, refuse)
        planned = plan_rebuilt(copies, new)
        newer = newer_partitions(paths, planned.copy.found, refuse)
        if unfinished is not None:
            write_rebuilt(planned, new, unfinished)
    write_rebuilt_rows(planned, copies, newer, RowWriter(output, color, zone=parse_zone(zone)))
    flush_stdout()
    for text in rebuilt_notes(planned, copies, newer, None if dry_run else directory):
        note(text)
    command.exit(max(refuse.status, int(bool(newer) or planned.copy.problem is not None)))
