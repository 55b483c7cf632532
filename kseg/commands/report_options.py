"""The options of `kseg report` that say what it shows, and the choices that they describe."""

import os
from datetime import tzinfo
from typing import NamedTuple

import click

from kseg.commands.options import REDACT_KEY, Command, now_option, option_values
from kseg.commands.parameters import Number
from kseg.redaction import Redaction
from kseg.report.gathered import Choices
from kseg.report.reporting import judged_by
from kseg.times import time_or_none

_MOST_DAYS, _MOST_REPLICAS = 3650, 100


class ReportOptions(NamedTuple):
    """What a report shows, and the time to judge by."""

    quick: bool
    days: int
    show_keys: bool
    redact_key: str | None
    speeds: bool
    price: float | None
    replicas: int
    now: str | None

    def choices(self, zone: tzinfo) -> Choices:
        """What they ask for."""
        text = os.environ.get(REDACT_KEY) if self.redact_key is None else self.redact_key
        redaction = None if text is None else Redaction.of(("keys",), text)
        return judged_by(
            time_or_none(self.now, zone),
            Choices(
                0,
                zone,
                is_quick=self.quick,
                days=self.days,
                shows_keys=self.show_keys,
                redact_key=None if redaction is None else redaction.key,
                times_codecs=self.speeds,
                price=self.price,
                replicas=self.replicas,
            ),
        )


def report_options(command: Command) -> Command:
    """`--quick` … `--now`; the command gets them as ReportOptions, `shown`."""
    command = option_values(shown=ReportOptions)(command)
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option("--quick", is_flag=True, help="Read names, indexes and headers of batches, no records."),
    click.option(
        "--days",
        metavar="N",
        type=Number(1, _MOST_DAYS),
        default=14,
        show_default=True,
        help="How far ahead retention is foretold.",
    ),
    click.option("--show-keys", is_flag=True, help="Show hot keys as they are; by default they have numbers."),
    click.option(
        "--redact-key",
        metavar="TEXT",
        help="Show substitutes of hot keys, those of --redact keys with the same key; better in KSEG_REDACT_KEY.",
    ),
    click.option("--speeds", is_flag=True, help="Measure how fast each codec compresses the samples."),
    click.option(
        "--price", metavar="PRICE", type=click.FloatRange(0), help="What a GiB costs a month: adds what topics cost."
    ),
    click.option(
        "--replicas",
        metavar="N",
        type=Number(1, _MOST_REPLICAS),
        default=1,
        show_default=True,
        help="With --price: how many copies there are of what is read.",
    ),
    now_option,
)
