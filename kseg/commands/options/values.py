"""Values that several commands take from their options: rows, work, redaction, selected records."""

import os
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, NamedTuple, cast

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from kseg.log.selection import IsolationLevel, Selection
    from kseg.output.forms import Form
    from kseg.redaction import Part, Redaction


def is_given(name: str) -> bool:
    """Whether an option was given, on the command line or by the environment; otherwise it has its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


REDACT_KEY = "KSEG_REDACT_KEY"
"""The variable with the key of --redact for all commands; it isn't visible in the list of processes."""


class WorkOptions(NamedTuple):
    """How a run that may take long shares its work: `-j`, `--gentle`, `--keep-cache`."""

    processes: int | None
    gentle: bool
    keep_cache: bool

    def begin(self) -> int | None:
        """How many processes may share the work, None for as many as help; lets others go first if it is gentle."""
        if not self.gentle:
            return self.processes
        from kseg.system.page_cache import give_way

        give_way()
        return 1 if self.processes is None else self.processes


class RowOptions(NamedTuple):
    """How rows are printed: the form, its colours, its columns, and whether lines are as long as they are."""

    output: str
    color: bool | None
    csv_safe: bool = False
    wide: bool = False
    columns: str | None = None

    def form(self, zone: tzinfo = UTC) -> "Form":
        """The form of the output, with times in a zone; text for one that a command has alone.

        Raises UsageError for --csv-safe in another than CSV, and for columns that no command has.
        """
        from kseg.output.fitting import room_on_terminal
        from kseg.output.forms import form_named

        room = None if self.wide else room_on_terminal()
        return form_named(
            self.output, self.color, csv_safe=self.csv_safe, zone=zone, columns=self._columns(), room=room
        )

    def _columns(self) -> tuple[str, ...]:
        names = tuple(name for name in (self.columns or "").split(",") if name)
        if names:
            from difflib import get_close_matches

            from kseg.text.fields import NAMES

            for name in (each for each in names if each not in NAMES):
                near = get_close_matches(name, NAMES, 1)
                hint = f", did you mean {near[0]}?" if near else "; the names are those of -o json"
                raise click.UsageError(f"--columns: no column {name}{hint}")
        return names


class RedactOptions(NamedTuple):
    """What is redacted, and the key."""

    redact: "tuple[Part, ...]"
    redact_key: str | None

    def redaction(self) -> "Redaction | None":
        """The redaction that the options describe."""
        if not self.redact:
            return None
        from kseg.redaction import Redaction

        return Redaction.of(self.redact, os.environ.get(REDACT_KEY) if self.redact_key is None else self.redact_key)


class GivenSelection(NamedTuple):
    """The options that select records; a command's without those that mean nothing there."""

    from_offset: int | None = None
    to_offset: int | None = None
    from_time: str | None = None
    to_time: str | None = None
    key: str | None = None
    key_regex: str | None = None
    grep: str | None = None
    headers: tuple[str, ...] = ()
    producer_id: int | None = None
    transactional_only: bool = False
    is_control: bool | None = None
    isolation: "IsolationLevel" = "read_uncommitted"
    limit: int | None = None
    tail: int | None = None
    sample: str | None = None
    is_followed: bool = False
    zone: str = "UTC"

    def selection(self) -> "Selection":
        """The selection that they describe. Raises UsageError for wrong ones."""
        from kseg.log.selection import SelectionOptions, selection_of

        asked = self._asdict()
        renamed = {"header": asked.pop("headers"), "control": asked.pop("is_control"), "tz": asked.pop("zone")}
        is_followed = asked.pop("is_followed")
        return selection_of(cast(SelectionOptions, {**asked, **renamed}))._replace(is_followed=is_followed)
