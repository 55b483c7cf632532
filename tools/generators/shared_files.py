"""What an installation puts into share/: man pages, and what lets shells complete kseg's commands."""

from kseg.commands.completion import completion_script
from tools.generators.command_line import helps, main_man_page, man_page

COMPLETIONS = {
    "bash": "bash-completion/completions/kseg",
    "zsh": "zsh/site-functions/_kseg",
    "fish": "fish/vendor_completions.d/kseg.fish",
}
"""Where each shell looks for the script of a command that is called kseg."""


def files() -> dict[str, str]:
    """Each file's text, by its path in share/."""
    pages = {f"man/man1/kseg-{each.name}.1": man_page(each) for each in helps()}
    scripts = {path: completion_script(shell).lstrip("\n") for shell, path in COMPLETIONS.items()}
    return {"man/man1/kseg.1": main_man_page(), **pages, **scripts}
