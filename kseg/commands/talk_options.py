"""`-q`, `-v` and `--color`, which every command takes: those that have a use of their own for one declare it."""

import click

from kseg.commands.options import COLOR, QUIET, VERBOSE


def add_talk_options(command: click.Command) -> None:
    """Adds what a command doesn't declare itself, before its other options' end; `-v` tells of the run on all."""
    own = {name for parameter in command.params for name in parameter.opts}
    command.params += [option for option in _options() if not own.intersection(option.opts)]
    for parameter in command.params:
        if "--verbose" in parameter.opts:
            parameter.callback = _tell_at_the_end


def _options() -> list[click.Option]:
    return [
        click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, help=QUIET),
        click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, help=f"{VERBOSE}."),
        click.Option(["--color/--no-color"], default=None, expose_value=False, help=COLOR),
    ]


def _tell_at_the_end(context: click.Context, _: click.Parameter, wanted: bool) -> bool:
    if wanted and not context.resilient_parsing:
        from kseg.output.talk import talk
        from kseg.system.usage import Usage

        usage = Usage()
        context.call_on_close(lambda: talk(f"kseg: {usage.line()}"))
    return wanted
