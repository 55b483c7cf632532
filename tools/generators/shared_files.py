"""Files of an installation in share/: man pages, and completion scripts for shells."""

from kseg.commands.completion import completion_script
from tools.generators.command_line import helps, main_man_page, man_page

COMPLETIONS = {
    "bash": "bash-completion/completions/kseg",
    "zsh": "zsh/site-functions/_kseg",
    "fish": "fish/vendor_completions.d/kseg.fish",
}
"""The place of the completion script for kseg, by shell."""


def files() -> dict[str, str]:
    """Return each file's text, by its path in share/."""
    pages = {f"man/man1/kseg-{each.name}.1": man_page(each) for each in helps()}
    scripts = {path: completion_script(shell).lstrip("\n") for shell, path in COMPLETIONS.items()}
    return {"man/man1/kseg.1": main_man_page(), **pages, **scripts}
