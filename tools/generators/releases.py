"""docs/reference/releases.md: the facts about each release of Kafka, and their sources."""

from pathlib import Path

from kseg.releases import NEWEST, OLDEST, Release, all_releases

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
INTRODUCTION = f"""# Releases of Kafka

kseg reads the files of every broker from {OLDEST} to {NEWEST}: log formats v0, v1 and v2, ZooKeeper and KRaft. You
don't need to name the release that wrote a file: each batch contains its format.

`kseg dump --like RELEASE` prints the same as the `DumpLogSegments` of that release, byte for byte. The real tools ran
once, on damaged files and on files of real brokers, and the tests compare kseg with their output
([Golden files](../../golden/README.md)). A release without its own recording prints the lines of its neighbours. The
only exceptions are changes in Kafka's source.

`--like 2.8` means the last patch release of 2.8, `--like latest` is {NEWEST}. 0.8.0 and 0.8.1 print like {OLDEST}.

- **recorded**: the real tool of this release printed the golden files, and kseg prints the same.
- **files**: a broker of this release, or its record classes, wrote golden files.
- **source**: only Kafka's source shows the lines and formats.

| line | releases | recorded | files | source |
|---|---|---|---|---|
"""
OPTIONS = """
kseg accepts options that came with a later release (`--skip-record-metadata`, decoders of newer internal topics), with
a note on stderr. They work as in that release. kseg decodes records of internal topics by the schemas of all releases
up to the newest.

`python tools/generate.py` makes this page from `kseg/releases.py` and the directory `golden/`.
"""


def page() -> str:
    """Return the contents of the page."""
    lines: dict[str, list[str]] = {}
    for numbers in all_releases():
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
    return f"| {' | '.join([line, *map(', '.join, kinds)])} |\n"
