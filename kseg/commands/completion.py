"""`kseg completion`: prints a shell's completion script."""

import click

from kseg.output.stdout import flush_stdout, write_stdout

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that makes a shell complete kseg's commands, options and paths.

    \b
    Examples:
      kseg completion bash >> ~/.bashrc
      kseg completion zsh > ~/.zfunc/_kseg
      kseg completion fish > ~/.config/fish/completions/kseg.fish
    """
    write_stdout(completion_script(shell).encode())
    flush_stdout()


def completion_script(shell: str) -> str:
    """The script by which a shell asks kseg what may come next: the same for all versions of kseg."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    assert made is not None
    # Only the text: click's own method would look for bash, to warn about an old one.
    writer = made(completion, {}, "kseg", "_KSEG_COMPLETE")
    script = writer.source_template % writer.source_vars()
    # In fish click's script would cut a value at its first comma.
    return script.replace('string split "," $completion', 'string split --max 1 "," $completion')
