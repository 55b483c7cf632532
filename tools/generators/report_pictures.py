"""docs/report-*.svg: pictures of reports about golden files, as `kseg report` draws them."""

from functools import cache
from pathlib import Path

from kseg.cluster.now import Now, NowSource
from kseg.doctor.examination import plan_examination
from kseg.report.block import Figure
from kseg.report.gather import Choices
from kseg.report.reporting import Reading, make_report

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
DISK = GOLDEN / "logs" / "0.11.0.3"
NOW_MS = 1_795_305_600_000
"""The day after the broker's last write: 22 November 2026."""


def bytes_picture() -> str:
    """Return the treemap of a disk."""
    return _alone(_figures()["Bytes by topic and partition"])


def batches_picture() -> str:
    """Return the histogram of its batches' sizes."""
    return _alone(_figures()["Bytes of a batch"])


def codecs_picture() -> str:
    """Return the savings of its codecs."""
    return _alone(_figures()["Bytes by topic and codec; pale: bytes saved by the codec"])


@cache
def _figures() -> dict[str, Figure]:
    choices = Choices(Now(NOW_MS, NowSource.GIVEN))
    report = make_report(plan_examination([DISK]), choices, Reading(processes=1), "kseg report")
    return {figure.title: figure for block in report.blocks for figure in block.figures}


def _alone(figure: Figure) -> str:
    """Return a picture that is a file of its own, on white paper whatever the viewer's background is."""
    head, rest = figure.svg.split(">", 1)
    lines = rest.replace("<rect ", "\n<rect ").replace("<text ", "\n<text ").replace("</svg>", "\n</svg>\n")
    return f'{head} xmlns="http://www.w3.org/2000/svg">\n<rect width="100%" height="100%" fill="#ffffff"/>{lines}'
