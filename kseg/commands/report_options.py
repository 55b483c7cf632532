"""The options of `kseg report` that say what it shows, and the choices that they describe."""

import os
from datetime import tzinfo
from typing import Any

import click

from kseg.commands.options import REDACT_KEY, Command
from kseg.commands.parameters import Number
from kseg.redaction import Redaction
from kseg.report.gathered import Choices
from kseg.report.reporting import judged_by
from kseg.times import time_or_none

_MOST_DAYS, _MOST_REPLICAS = 3650, 100


def report_options(command: Command) -> Command:
    """`--quick` … `--replicas`, which `choices_of` takes."""
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
)


def choices_of(options: dict[str, Any], zone: tzinfo) -> Choices:
    """What these options and `--now` ask for."""
    text = os.environ.get(REDACT_KEY) if options["redact_key"] is None else options["redact_key"]
    redaction = None if text is None else Redaction.of(("keys",), text)
    return judged_by(
        time_or_none(options["now"], zone),
        Choices(
            0,
            zone,
            is_quick=options["quick"],
            days=options["days"],
            shows_keys=options["show_keys"],
            redact_key=None if redaction is None else redaction.key,
            times_codecs=options["speeds"],
            price=options["price"],
            replicas=options["replicas"],
        ),
    )
