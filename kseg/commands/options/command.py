"""The decorator that makes a command: its parameters from the table, its values from what is given."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from kseg.commands.inputs import Given, run_with_inputs
from kseg.commands.options.row import argument_of, option_of, prefix_of, takes
from kseg.commands.options.table import ARGUMENTS, OPTIONS
from kseg.output.progress import Talk

Values = TypeVar("Values")
Run = Callable[[Values], None]


class TableCommand(click.Command):
    """A command whose help has its options under headings."""

    headings: Mapping[str, str]
    """The heading of each parameter, by its name."""
    values: type
    """The values that the command runs with."""

    def sections(self, context: click.Context) -> dict[str, list[tuple[str, str]]]:
        """Return what to write for each option and what it means, under the headings; --help is among the last."""
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


def command(
    values: type[Values], *, kind: type[TableCommand] = TableCommand, prepare: Callable[[Given], Given] | None = None
) -> Callable[[Run[Values]], TableCommand]:
    """Make a command that runs with the values of its arguments and options.

    The function's name is the command's. Each field of `values` is an option or argument by its name, or, without a
    default, values of its own; a field with a default that is neither keeps that. A field `talk` says what there is to
    say, and has the exit status at the end. prepare: changes what is given before inputs are read.
    """

    def decorate(run: Run[Values]) -> TableCommand:
        name = run.__name__.replace("_", "-")
        arguments = [row for row in ARGUMENTS if takes(row, name)]
        options = [(heading, row) for heading, rows in OPTIONS for row in rows if takes(row, name)]
        read = [row.field for row in (*arguments, *(row for _, row in options)) if row.is_read]

        def start(**given: Any) -> None:
            talk = Talk(is_quiet=given["quiet"], progress=given.get("progress"))

            def run_placed(placed: Given) -> None:
                run(values_of(values, {**placed, "talk": talk}))
                click.get_current_context().exit(talk.status)

            run_with_inputs(given if prepare is None else prepare(given), read, run_placed)

        made = kind(
            name,
            callback=start,
            params=[*map(argument_of, arguments), *(option_of(row, name) for _, row in options)],
            help=run.__doc__,
            epilog=f"The environment can set each option: {prefix_of(name)}OPTION. `kseg help` says what else it sets.",
        )
        made.values = values
        made.headings = {row.field: heading for heading, row in options}
        return made

    return decorate


def values_of(kind: type[Values], given: Mapping[str, Any]) -> Values:
    """Return the values of a class of which each field is an option, or such values again."""
    defaults = kind._field_defaults  # type: ignore[attr-defined]
    found = {field: given[field] for field in kind.__annotations__ if field in given}
    for field, part in kind.__annotations__.items():
        if field not in found and field not in defaults:
            found[field] = values_of(part, given)
    return kind(**found)
