"""The blocks of a report in their order, and the report made of them."""

from collections.abc import Callable

from kseg.report.block import About, Block, DiskReport
from kseg.report.blocks.batches_block import batches_block
from kseg.report.blocks.bytes_block import bytes_block
from kseg.report.blocks.codec_trial_block import codec_trial_block
from kseg.report.blocks.codecs_block import codecs_block
from kseg.report.blocks.compaction_block import compaction_block
from kseg.report.blocks.cost_block import cost_block
from kseg.report.blocks.findings_block import findings_block
from kseg.report.blocks.forecast_block import forecast_block
from kseg.report.blocks.glossary import GLOSSARY
from kseg.report.blocks.groups_block import groups_block
from kseg.report.blocks.keys_block import keys_block
from kseg.report.blocks.producers_block import producers_block, transactions_block
from kseg.report.blocks.rate_block import rate_block
from kseg.report.blocks.replicas_block import replicas_block
from kseg.report.blocks.settings_block import settings_block
from kseg.report.blocks.sizes_block import sizes_block
from kseg.report.blocks.skew_block import skew_block
from kseg.report.blocks.timelines_block import timelines_block
from kseg.report.blocks.times_block import times_block
from kseg.report.gathered import Gathered

BLOCKS: tuple[Callable[[Gathered], Block], ...] = (
    findings_block,
    bytes_block,
    skew_block,
    timelines_block,
    forecast_block,
    rate_block,
    batches_block,
    codecs_block,
    codec_trial_block,
    sizes_block,
    keys_block,
    compaction_block,
    times_block,
    producers_block,
    transactions_block,
    groups_block,
    replicas_block,
    settings_block,
    cost_block,
)


def report_of(known: Gathered, about: About) -> DiskReport:
    """The report of what was gathered; blocks that have nothing to say are left out."""
    blocks = (make(known) for make in BLOCKS)
    told = tuple(block for block in blocks if block.verdicts or block.tables or block.notes)
    return DiskReport(about, told, GLOSSARY, is_well=known.check_up.is_well)
