"""docs/reference/releases.md: the facts about each release of Kafka, and their sources."""

from pathlib import Path

from kseg.releases import LATEST, NEWEST, OLDEST, RELEASES, Release
from tools.golden_store import WITHOUT_TOOL

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
INTRODUCTION = f"""# Releases of Kafka

kseg reads the files of every broker from {OLDEST} to {NEWEST}: log formats v0, v1 and v2, ZooKeeper and KRaft. You
never have to say which release wrote a file: each batch tells its own format.

`kseg dump --like RELEASE` prints what the `DumpLogSegments` of a release prints, byte for byte. That is held against
the real tools: they ran once, on files that real brokers wrote and on damaged ones, and the tests compare with what
they printed ([Golden files](../../golden/README.md)). A release without a recording of its own prints as its
neighbours do, by Kafka's source: what a line looks like is known to have changed only where a recorded release or the
source says so.

`--like 2.8` means the last patch release of 2.8, `--like latest` is {LATEST}. There is no `kafka-tools` of {NEWEST}
yet: its files are read, and `--like {NEWEST}` prints {LATEST}'s lines and says so on stderr. 0.8.0 and 0.8.1 print as
{OLDEST} does.

- **recorded**: the real tool of this release printed the golden files, and kseg prints the same.
- **files**: a broker of this release wrote golden files, or its record classes did.
- **source**: lines and formats are known from Kafka's source alone.

| line | releases | recorded | files | source |
|---|---|---|---|---|
"""
OPTIONS = """
An option of the tool that came with a later release (`--skip-record-metadata`, decoders of newer internal topics)
does what it does there, and stderr says so. Records of internal topics are decoded by the schemas of all releases up
to the newest.

`python tools/generate.py` makes this page from `kseg/releases.py` and the directory `golden/`.
"""


def page() -> str:
    """Return the contents of the page."""
    lines: dict[str, list[str]] = {}
    for numbers in RELEASES:
        lines.setdefault(".".join(map(str, numbers[:2])), []).append(str(Release(numbers)))
    recorded = {path.stem for path in (GOLDEN / "cases").glob("*.jsonl")}
    written = {
        path.name.split("-")[-1 if path.name.startswith("classes") else 0] for path in (GOLDEN / "logs").iterdir()
    }
    rows = [_row(line, releases, recorded, written) for line, releases in lines.items()]
    return INTRODUCTION + "".join(rows) + OPTIONS


def _row(line: str, releases: list[str], recorded: set[str], written: set[str]) -> str:
    kinds = (
        releases,
        [each for each in releases if each in recorded],
        [each for each in releases if each in written],
        [each for each in releases if each not in recorded | written],
    )
    marked = (", ".join(f"{each} (no tool)" if each in WITHOUT_TOOL else each for each in kind) for kind in kinds)
    return f"| {' | '.join([line, *marked])} |\n"
