"""Speeds of building batches of records, compared with Kafka's builder and the Python clients' builders."""

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.peers import class_path

HOME = Path(__file__).parent
CODECS = ("none", "lz4")
PER_BATCH, VALUE_SIZE = 75, 200  # some 16 KiB per batch
COUNTS = {
    "Kafka 4.3.1": 4_000_000,
    "kseg": 1_500_000,
    "kseg, at once": 1_500_000,
    "aiokafka": 1_000_000,
    "kafka-python": 300_000,
}


class Target(NamedTuple):
    """A target for the first builder's speed, as a multiple of the second builder's."""

    first: str
    second: str
    at_least: float


TARGETS = (
    Target("kseg, at once", "Kafka 4.3.1", 0.3),
    Target("kseg", "Kafka 4.3.1", 0.3),
    Target("kseg", "aiokafka", 1),
    Target("kseg", "kafka-python", 1),
)


class Speed(NamedTuple):
    """Records per CPU second: the median of the repetitions, and the ratio to the other builder of each target."""

    codec: str
    builder: str
    records_per_second: float


def build_speeds(repeat: int) -> list[Speed]:
    """Measure all builders in turns."""
    found: dict[tuple[str, str], list[float]] = {}
    for _ in range(repeat):
        for codec in CODECS:
            for builder in COUNTS:
                print(f"building, {codec}: {builder}", file=sys.stderr, flush=True)
                found.setdefault((codec, builder), []).append(_measure(builder, codec))
    return [Speed(codec, builder, median(values)) for (codec, builder), values in found.items()]


def _measure(builder: str, codec: str) -> float:
    shape = [codec, str(COUNTS[builder]), str(PER_BATCH), str(VALUE_SIZE)]
    if builder.startswith("Kafka "):
        program = ["java", "-cp", class_path(builder.removeprefix("Kafka ")), str(HOME / "BuildRecords.java"), *shape]
    else:
        program = [sys.executable, str(HOME / "build_records.py"), builder, *shape]
    return float(subprocess.run(program, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def speed_rows(speeds: list[Speed]) -> list[tuple[str, ...]]:
    """Yield rows of the report's table."""
    by_builder = {(speed.codec, speed.builder): speed.records_per_second for speed in speeds}
    rows = []
    for codec, builder in by_builder:
        targets = [target for target in TARGETS if target.first == builder]
        ratios = [by_builder[codec, builder] / by_builder[codec, target.second] for target in targets]
        rows.append(
            (
                codec,
                builder,
                f"{by_builder[codec, builder]:,.0f}",
                ", ".join(f"{ratio:.2f} of {target.second}" for ratio, target in zip(ratios, targets, strict=True)),
                ", ".join(f"≥ {target.at_least:g}" for target in targets),
                ", ".join(
                    "yes" if ratio >= target.at_least else "no" for ratio, target in zip(ratios, targets, strict=True)
                ),
            )
        )
    return rows
