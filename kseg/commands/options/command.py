"""The decorator that makes a command of parameters in the table, and the values that several commands share."""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, tzinfo
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from kseg.commands.inputs import Given, local_inputs
from kseg.commands.options.row import Option, parameter_of, prefix_of, takes
from kseg.commands.options.table import ARGUMENTS, OPTIONS
from kseg.named_tuple import NamedTuple
from kseg.output.progress import Talk

if TYPE_CHECKING:
    from kseg.log.selection import IsolationLevel, Selection
    from kseg.output.csv_style import CsvStyle
    from kseg.output.forms import Form
    from kseg.redaction import Part, Redaction

Values = TypeVar("Values")
Run = Callable[[Values], None]


SHORT = "-h"
"""Option for a first screen of help; `--help` shows everything."""
SCREEN_COLUMNS, SCREEN_LINES = 80, 24
SHOWN_EXAMPLES = 3


class TableCommand(click.Command):
    """A command whose help has its options under headings."""

    rows: Sequence[Option]
    """Its arguments and options in the table."""
    headings: Mapping[str, str]
    """The heading of each parameter, by its name."""
    values: type
    """The values that the command runs with."""

    @cached_property
    def params(self) -> list[click.Parameter]:  # type: ignore[override]  # click's is a variable: parse_args() deletes it
        """All arguments and options. Few runs make them all: see parse_args()."""
        return self._made_of(self.rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse arguments. Plain options that aren't given get their values here, since click takes long for each."""
        given = {each.partition("=")[0] for each in args if each.startswith("-") and each != "-"}
        if not self._is_clear(ctx, given):
            return super().parse_args(ctx, args)
        for row in self.rows:
            if not row.is_plain or not given.isdisjoint(row.flags.split()):
                continue
            ctx.params[row.field] = row.missing_value
            ctx.set_parameter_source(row.field, ParameterSource.DEFAULT)
        self.params = self._made_of(row for row in self.rows if row.field not in ctx.params)
        try:
            return super().parse_args(ctx, args)
        finally:
            del self.params

    def _made_of(self, rows: Iterable[Option]) -> list[click.Parameter]:
        return [parameter_of(row, str(self.name)) for row in rows]

    def _is_clear(self, ctx: click.Context, given: Set[str]) -> bool:
        """Return True if only the command line has values, and its arguments that begin with a dash are flags."""
        prefix = prefix_of(str(self.name))
        if ctx.default_map or any(name.startswith(prefix) for name in os.environ):
            return False
        return given <= {*" ".join(row.flags for row in self.rows).replace("/", " ").split()}

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the help option without `-h`, which shows the first screen."""
        return [name for name in super().get_help_option_names(ctx) if name != SHORT]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Add `-h`, as click adds `--help`."""
        return [*super().get_params(ctx), _short_help_option()]

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return each option and its meaning under the headings; --help is among the last."""
        last, _ = OPTIONS[-1]
        found: dict[str, list[tuple[str, str]]] = {heading: [] for heading, _ in OPTIONS}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
            if record is not None:
                found[self.headings.get(str(parameter.name), last)].append(record)
        return {heading: records for heading, records in found.items() if records}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        for heading, records in self.sections(ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)


class ShortHelp:
    """A first screen of help: purpose, three examples, and the options that most people need."""

    def __init__(self, made: TableCommand, context: click.Context) -> None:
        """Take a command and its context."""
        self._made, self._context = made, context

    def text(self) -> str:
        """Return lines that fit a screen of 80 columns and 24 lines."""
        from kseg.commands.guide import FIRST_OPTIONS

        wanted = FIRST_OPTIONS.get(str(self._made.name), "").split()
        shown = [record for name in wanted if (record := self._record(name)) is not None]
        while (text := self._with(shown)).count("\n") >= SCREEN_LINES and shown:
            shown.pop()
        return text

    def _record(self, name: str) -> tuple[str, str] | None:
        """Return an option and its meaning; an option with a long list of values has no meaning here."""
        for each in self._made.get_params(self._context):
            if isinstance(each, click.Option) and name in each.opts:
                record = each.get_help_record(self._context)
                return (name, record[1]) if record and len(record[0]) > SCREEN_COLUMNS / 2 else record
        return None

    def _with(self, options: list[tuple[str, str]]) -> str:
        formatter = click.HelpFormatter(width=SCREEN_COLUMNS)
        self._made.format_usage(self._context, formatter)
        purpose, _, rest = inspect.cleandoc(self._made.help or "").partition("\n\n")
        formatter.write(f"\n{purpose}\n")
        lines = rest.partition("\b\nExamples:\n")[2].partition("\n\n")[0].splitlines()
        examples = [line for line in lines if len(line) <= SCREEN_COLUMNS - 2][:SHOWN_EXAMPLES]
        if examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"{line}\n" for line in examples))
        if options:
            with formatter.section("Options"):
                formatter.write_dl(options)
        count = sum(isinstance(each, click.Option) and not each.hidden for each in self._made.params)
        formatter.write(f"\n`{self._context.command_path} --help` explains all {count} options.\n")
        return formatter.getvalue()


def _show_short_help(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        assert isinstance(context.command, TableCommand)
        click.echo(ShortHelp(context.command, context).text(), nl=False)
        context.exit()


def command(
    values: type[Values], *, kind: type[TableCommand] = TableCommand, prepare: Callable[[Given], Given] | None = None
) -> Callable[[Run[Values]], TableCommand]:
    """Make a command that runs with the values of its arguments and options.

    The function's name is the command's. Each field of `values` is an option or argument by its name. A field without a
    default may also be a class of such values. Other fields keep their defaults. A field `talk` takes messages, and has
    the exit status at the end. prepare: changes the given values before inputs are read.
    """

    def decorate(run: Run[Values]) -> TableCommand:
        name = run.__name__.replace("_", "-")
        arguments = [row for row in ARGUMENTS if takes(row, name)]
        options = [(heading, row) for heading, rows in OPTIONS for row in rows if takes(row, name)]
        rows = [*arguments, *(row for _, row in options)]
        read = [row.field for row in rows if row.is_read]

        def start(**given: Any) -> None:
            talk = Talk(is_quiet=given["quiet"], progress=given.get("progress"))
            if given.get("csv_excel") and source_of("output") is not ParameterSource.COMMANDLINE:
                given["output"] = "csv"
            given = given if prepare is None else prepare(given)
            with _evidence_of(given, read, talk), local_inputs(given, read, talk) as local:
                run(values_of(values, {**local, "talk": talk}))
            click.get_current_context().exit(talk.status)

        made = kind(
            name,
            callback=start,
            help=run.__doc__,
            epilog=f"{prefix_of(name)}OPTION in the environment sets an option; see `kseg help environment`.",
        )
        del made.params
        made.rows = rows
        made.values = values
        made.headings = {row.field: heading for heading, row in options}
        return made

    return decorate


def _evidence_of(given: Given, read: Sequence[str], talk: Talk) -> AbstractContextManager[None]:
    if not given.get("evidence"):
        return nullcontext()
    from kseg.commands.evidence import evidence_of

    return evidence_of(given, read, talk)


@cache
def _short_help_option() -> click.Option:
    return click.Option(
        [SHORT, "short_help"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_short_help,
        help="Show short help: purpose, examples and common options.",
    )


def values_of(kind: type[Values], given: Mapping[str, Any]) -> Values:
    """Return the values of a class whose fields are options, or classes of such values."""
    defaults = kind._field_defaults  # type: ignore[attr-defined]
    found = {field: given[field] for field in kind.__annotations__ if field in given}
    for field, part in kind.__annotations__.items():
        if field not in found and field not in defaults:
            found[field] = values_of(part, given)
    return kind(**found)


def is_given(name: str) -> bool:
    """Return True if an option was given, on the command line or in the environment."""
    return source_of(name) is not ParameterSource.DEFAULT


def source_of(name: str) -> ParameterSource | None:
    """Return the source of an option's value."""
    return click.get_current_context().get_parameter_source(name)


REDACT_KEY = "KSEG_REDACT_KEY"
"""Variable with the key of --redact for all commands; it isn't visible in the list of processes."""


class WorkOptions(NamedTuple):
    """The division of work in long runs: `-j`, `--gentle`, `--keep-cache`."""

    processes: int | None
    gentle: bool
    keep_cache: bool

    def begin(self) -> int | None:
        """Return the number of processes that share the work, None for the most useful number.

        With --gentle, the process first lowers its own priority.
        """
        if not self.gentle:
            return self.processes
        from kseg.system.page_cache import give_way

        give_way()
        return 1 if self.processes is None else self.processes


class CsvOptions(NamedTuple):
    """The style of CSV: `--csv-safe`, `--csv-excel`, `--csv-separator`."""

    csv_safe: bool = False
    csv_excel: bool = False
    csv_separator: str = ","

    @property
    def style(self) -> "CsvStyle":
        """The style for the writers of CSV."""
        from kseg.output.csv_style import SEPARATORS, CsvStyle

        return CsvStyle(self.csv_safe, self.csv_excel, SEPARATORS[self.csv_separator])


class RowOptions(NamedTuple):
    """The form of rows: format, colours, columns, whether long lines are kept, and sums."""

    output: str
    color: bool | None
    csv: CsvOptions
    wide: bool = False
    columns: str | None = None
    quiet: bool = False

    def form(self, zone: tzinfo = UTC) -> "Form":
        """Return the form of the output, with times in a zone; text for a form that only one command has.

        Raises UsageError for options of CSV in another form, and for unknown columns.
        """
        from kseg.output.fitting import room_on_terminal
        from kseg.output.forms import form_named

        return form_named(
            self.output,
            self.color,
            csv=self.csv.style,
            zone=zone,
            columns=self._columns(),
            room=None if self.wide else room_on_terminal(),
            is_quiet=self.quiet,
        )

    def _columns(self) -> tuple[str, ...]:
        names = tuple(name for name in (self.columns or "").split(",") if name)
        if names:
            from difflib import get_close_matches

            from kseg.text.fields import NAMES

            for name in (each for each in names if each not in NAMES):
                near = get_close_matches(name, NAMES, 1)
                hint = f", did you mean {near[0]}?" if near else "; the names are those of -o json"
                raise click.UsageError(f"--fields: no column {name}{hint}")
        return names


class RedactOptions(NamedTuple):
    """The redacted parts, and the key."""

    redact: "tuple[Part, ...]"
    redact_key: str | None

    def redaction(self) -> "Redaction | None":
        """Return the redaction settings given by the options."""
        if not self.redact:
            return None
        from kseg.redaction import Redaction

        return Redaction.of(self.redact, os.environ.get(REDACT_KEY) if self.redact_key is None else self.redact_key)


class GivenSelection(NamedTuple):
    """The options that select records, without those that a command doesn't have."""

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
        """Return the selection of the options. Raises UsageError for wrong options."""
        from kseg.log.selection import SelectionOptions, selection_of

        asked = self._asdict()
        renamed = {"header": asked.pop("headers"), "control": asked.pop("is_control"), "tz": asked.pop("zone")}
        is_followed = asked.pop("is_followed")
        return selection_of(cast(SelectionOptions, {**asked, **renamed}))._replace(is_followed=is_followed)
