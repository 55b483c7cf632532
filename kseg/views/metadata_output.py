"""Writes a cluster's metadata: as rows, or as a script that makes them anew."""

from collections.abc import Callable, Iterable
from typing import Any

from kseg.output.json_lines import write_json
from kseg.output.row_writer import RowWriter, Section
from kseg.output.stdout import flush_stdout, write_line
from kseg.views.carry_over.carried_script import Script
from kseg.views.cluster import ClusterMetadata
from kseg.views.metadata_columns import METADATA


def write_sections(
    found: ClusterMetadata,
    sections: Iterable[tuple[str, Section[Any], list[Any]]],
    writer: RowWriter,
    show: str | None,
) -> None:
    """Writes all kinds of rows, or one; CSV can have one only. JSON begins with the moment."""
    wanted = show or ("partitions" if writer.form.name == "csv" else None)
    if wanted is None and writer.form.name == "json":
        write_json(writer.in_zone(METADATA).as_object(found))
    for name, section, rows in sections:
        if wanted in (None, name):
            writer.write(section, rows)


def write_script(script: Script, note: Callable[[str], object]) -> None:
    """Writes a script, and says how much it carries over and what it doesn't."""
    for line in script.lines:
        write_line(line)
    flush_stdout()
    named = ", which the script's end names" if script.left_out else ""
    count = "1 command" if script.command_count == 1 else f"{script.command_count} commands"
    note(f"{count}; left out: {len(script.left_out)}{named}")
