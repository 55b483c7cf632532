"""docs/pictures/kseg.svg and docs/pictures/first-look.svg: runs of kseg on golden files, as a terminal shows them."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tools.generators.terminal import run_coloured

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
COLUMNS = 104
KAFKAS_TOOL = "kafka-dump-log.sh --print-data-log --files 210-wiped-batch/00000000000000021933.log"
RECORDED = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures" / "dump-log-segments.txt"
"""Output of KAFKAS_TOOL, of Kafka 4.3.1: its records, and the exception that ends it."""
LAST_LINES = 4
DAMAGE = (
    "kseg dump -o table --limit 8 210-wiped-batch/00000000000000021933.log",
    "kseg verify 210-wiped-batch",
    "kseg salvage --dry-run 210-wiped-batch",
)
FIRST_LOOK = (
    "kseg ls --by topic --now 2026-11-22 4.3.1",
    "kseg dump 4.3.1/compacted-txn-0 -q --limit 5 -o table --fields offset,time,key,value",
)
PROMPT = "bold bright_green"
FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {char_height}px; \
line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""The picture around the lines. It names installed fonts, and none that a viewer would have to fetch."""


def damage() -> str:
    """Return the picture of a damaged segment: printed, checked, saved."""
    return _picture(
        "A batch of this segment was overwritten with zeros", GOLDEN / "damaged", DAMAGE, (KAFKAS_TOOL, _tools_end())
    )


def _tools_end() -> str:
    """Return the last lines of Kafka's tool, cut like those of a terminal that doesn't wrap."""
    lines = RECORDED.read_text(encoding="utf-8").splitlines()[-LAST_LINES:]
    *records, exception = (line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}…" for line in lines)
    return "\n".join(["…", *records, f"\x1b[31m{exception}\x1b[0m"])


def first_look() -> str:
    """Return the picture of a broker's log directory: its topics, and the first records of one."""
    return _picture("What is there, and what is in it", GOLDEN / "logs", FIRST_LOOK)


def _picture(title: str, directory: Path, commands: Sequence[str], before: tuple[str, str] | None = None) -> str:
    """Return the picture of runs of commands in a directory.

    before: another command and its output, which are shown first.
    """
    console = Console(record=True, file=StringIO(), width=COLUMNS, force_terminal=True, highlight=False)
    runs = [(command, run_coloured(command, directory, COLUMNS)) for command in commands]
    for command, output in [before, *runs] if before else runs:
        console.print(Text.assemble(("$ ", PROMPT), command), soft_wrap=True)
        console.print(Text.from_ansi(output))
        console.print()
    return console.export_svg(title=title, theme=DIMMED_MONOKAI, code_format=FRAME, unique_id="kseg")
