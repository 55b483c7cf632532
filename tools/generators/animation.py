"""Animated SVG of a terminal: commands are typed, output appears, lines scroll.

Only CSS moves the picture. Without animations, as readers may prefer, it shows the last screen.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

COLUMNS, ROWS = 104, 26
FONT_SIZE = 14
CELL, LINE = 8.43, 19
"""The width and height of a character in the fonts below."""
MARGIN, BAR = 14, 34
KEY_SECONDS, READY_SECONDS, LINE_SECONDS, LAST_SECONDS = 0.03, 0.5, 0.32, 8
"""Time for a typed character, before output, for reading a line of it, and at the end."""
TIMES = 3
PROMPT = "$ "
FONTS = 'Menlo, Consolas, "DejaVu Sans Mono", monospace'
COLOURS = {
    "": ("#1f2328", "#e6edf3"),
    "red": ("#b3202a", "#ff8a80"),
    "yellow": ("#7a5200", "#e8b64c"),
    "green": ("#116329", "#6fdd8b"),
    "cyan": ("#0a5c78", "#76c7e0"),
    "dim": ("#57606a", "#9aa4af"),
}
"""Colours of text on a light and on a dark background."""
NAMES = {1: "red", 2: "green", 3: "yellow", 6: "cyan", 8: "dim"}
"""The colours that kseg uses, by their numbers in a terminal; bright ones have 8 more."""
BACKGROUND, FRAME = ("#ffffff", "#0d1117"), ("#d0d7de", "#3d444d")


class Run(NamedTuple):
    """A command as it is typed, and its output with a terminal's codes of colours."""

    command: str
    output: str


class Step(NamedTuple):
    """Lines that appear together, and the seconds until the next step; a line that is typed is alone."""

    lines: tuple[Text, ...]
    seconds: float
    is_typed: bool = False


def animated(title: str, words: str, runs: Sequence[Run]) -> str:
    """Return the recording of runs. words: the same story for readers who can't see it."""
    steps = [step for run in runs for step in _steps(run)]
    starts = [0.0, *accumulate(step.seconds for step in steps)]
    total = starts.pop() + LAST_SECONDS
    ends = list(accumulate(len(step.lines) for step in steps))
    rules, content = [], []
    for number, (step, start, end) in enumerate(zip(steps, starts, ends, strict=True)):
        top = end - len(step.lines)
        rules.append(_appears(f"s{number}", start, total))
        content.append(f'<g class="s{number}">{"".join(_lines(step.lines, top))}</g>')
        if step.is_typed:
            cover, moves = _cover(step.lines[0], top, start, total)
            content.append(cover)
            rules.append(moves)
    hidden = [(start, max(end - ROWS, 0)) for start, end in zip(starts, ends, strict=True)]
    scrolls = "".join(f"{_percent(start, total)}{{transform:translateY({-rows * LINE}px)}}" for start, rows in hidden)
    rules.append(f"@keyframes up{{{scrolls}}}.up{{animation:up {total:.1f}s step-end {TIMES}}}")
    last = hidden[-1][1] * LINE
    screen = f'<g class="up" transform="translate(0,-{last})">{"".join(content)}</g>'
    return _window(title, words, screen, f"@media(prefers-reduced-motion:no-preference){{{''.join(rules)}}}")


def _window(title: str, words: str, screen: str, rules: str) -> str:
    """Return a terminal's window around a screen; rules: those of its movements."""
    width, height = COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + BAR + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img" '
        f"aria-label={quoteattr(words)}>\n<style>\ntext{{font:{FONT_SIZE}px {FONTS};white-space:pre}}"
        f".b{{font-weight:bold}}.c{{visibility:hidden}}\n{_colours(0)}\n"
        f"@media(prefers-color-scheme:dark){{{_colours(1)}}}\n{rules}\n</style>\n"
        f'<rect class="bg edge" x="1" y="1" width="{width - 2:.0f}" height="{height - 2}" rx="8"/>\n'
        f'<text class="dim" x="{width / 2:.0f}" y="22" text-anchor="middle">{escape(title)}</text>\n'
        f'<svg x="{MARGIN}" y="{BAR}" width="{COLUMNS * CELL:.0f}" height="{ROWS * LINE}">{screen}</svg>\n</svg>\n'
    )


def _steps(run: Run) -> Iterator[Step]:
    """Yield the steps of a run; an empty line ends it."""
    first, *others = run.command.split("\n")
    typed = [Text.assemble((PROMPT, "bold green"), first), *(Text.assemble(("> ", "green"), line) for line in others)]
    *begun, last = [piece for line in typed for piece in _wrapped(line)]
    yield from (Step((line,), KEY_SECONDS * len(line), is_typed=True) for line in begun)
    yield Step((last,), KEY_SECONDS * len(last) + READY_SECONDS, is_typed=True)
    output = [piece for line in Text.from_ansi(run.output).split("\n") for piece in _wrapped(line)]
    yield Step((*(output if run.output else ()), Text()), LINE_SECONDS * (len(output) + 2))


def _wrapped(line: Text) -> Iterator[Text]:
    """Yield a line as a terminal shows it, which goes on in the next row at its right edge."""
    yield from line.divide(range(COLUMNS, len(line), COLUMNS)) if len(line) > COLUMNS else [line]


def _lines(lines: Sequence[Text], top: int) -> Iterator[str]:
    """Yield the elements of lines, the first of which is in the row `top`."""
    console = Console(color_system=None, width=COLUMNS)
    for row, line in enumerate(lines, top):
        column = 0
        for segment in Segment.simplify(line.render(console)):
            text = segment.text.rstrip("\n")
            if text.strip():
                name = _class(segment.style or Style())
                indent = len(text) - len(text.lstrip())
                place = f'x="{(column + indent) * CELL:.5g}" y="{row * LINE + FONT_SIZE}"'
                length = f'textLength="{len(text.strip()) * CELL:.5g}"'
                yield f"<text{name and f' class={quoteattr(name)}'} {place} {length}>{escape(text.strip())}</text>"
            column += len(text)


def _class(style: Style) -> str:
    """Return the classes of a style: its colour, and `b` if it is bold."""
    number = style.color.number if style.color else None
    colour = "" if number is None else NAMES.get(number) or NAMES[number - 8]
    return " ".join(filter(None, ("dim" if style.dim else colour, "b" if style.bold else "")))


def _cover(line: Text, row: int, start: float, total: float) -> tuple[str, str]:
    """Return a cover of a typed line that moves to the right, with a cursor, and its rules."""
    name, end = f"c{row}", start + KEY_SECONDS * len(line)
    place = f'y="{row * LINE}" height="{LINE}"'
    rules = (
        f"@keyframes {name}{{0%{{visibility:hidden}}{_percent(start, total)}{{visibility:visible;transform:none;"
        f"animation-timing-function:steps({len(line)})}}{_percent(end, total)}{{visibility:hidden;"
        f"transform:translateX({len(line) * CELL:.0f}px)}}}}.{name}{{animation:{name} {total:.1f}s step-end {TIMES}}}"
    )
    cover = f'<rect class="bg" {place} width="{COLUMNS * CELL + 9:.0f}"/><rect class="dim" {place} width="8"/>'
    return f'<g class="c {name}">{cover}</g>', rules


def _appears(name: str, start: float, total: float) -> str:
    hidden = "0%{visibility:hidden}" if start else ""
    shown = f"{_percent(start, total)}{{visibility:visible}}"
    return f"@keyframes {name}{{{hidden}{shown}}}.{name}{{animation:{name} {total:.1f}s step-end {TIMES}}}"


def _percent(seconds: float, total: float) -> str:
    return f"{100 * seconds / total:.2f}%"


def _colours(which: int) -> str:
    """Return the rules of all colours for a light (0) or a dark (1) background."""
    texts = "".join(f"{f'.{name}' if name else 'text'}{{fill:{pair[which]}}}" for name, pair in COLOURS.items())
    return f"{texts}.bg{{fill:{BACKGROUND[which]}}}.edge{{stroke:{FRAME[which]}}}"
