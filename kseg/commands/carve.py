"""`kseg carve`: recovers partitions from raw disks and their images."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from kseg.carve.carving import CarveSettings, Carving, carve_images
from kseg.carve.check import check_evidence
from kseg.carve.completeness import completeness_of
from kseg.carve.evidence import WrittenSegment, total_of, write_evidence
from kseg.carve.images import Images, check_obstacles, check_other_device
from kseg.carve.segments import segments_of, write_segment
from kseg.carve.topics import records_of_log
from kseg.cluster.cluster import Cluster
from kseg.commands.inputs import new_directory_of
from kseg.commands.options.command import command
from kseg.errors import OpenError
from kseg.kernel.record import Record
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import PartitionChoice
from kseg.output.evidence import current_circumstances
from kseg.output.forms import Form, form_named
from kseg.output.progress import Count, Talk
from kseg.output.streams import flush_stdout, write_line, write_lines
from kseg.text.carve import checked_line, partition_lines, partition_object, total_lines


class CarveOptions(NamedTuple):
    """The part of the images to read, the new directory, and the format of the report."""

    paths: tuple[Path, ...]
    directory: Path | None
    start: int
    size: int | None
    block_size: int | None
    min_batches: int
    like: tuple[Path, ...]
    metadata: tuple[Path, ...]
    names: tuple[tuple[str, str], ...]
    hints: str
    likely: bool
    topics: tuple[str, ...]
    legacy: bool
    no_hash: bool
    force: bool
    check: Path | None
    dry_run: bool
    output: str
    talk: Talk


@command(CarveOptions)
def carve(options: CarveOptions) -> None:
    """Recover deleted partitions from raw disks and images.

    Use `carve` if a topic, a log directory or segments were deleted, or if a file system can't be mounted. It finds
    batches in a disk's raw bytes, and writes logs that all other commands read. IMAGES never change.

    \b
    Examples:
      kseg carve disk.img --dry-run
      kseg carve disk.img --to carved
      kseg carve disk.img --like broker2/ --to carved
      kseg carve disk.img --name carved-0001=orders-0 --to carved
      kseg carve --check recovered/carve.jsonl
      kseg carve disk.img --from 1MiB --size 500GB --to carved

    First stop everything that writes to the disk, and don't run fstrim. Look for cheaper ways: while the broker runs,
    /proc has its deleted segments, in PID/fd; directories that end in -delete stay for a minute; other brokers and
    remote tiers may have the data. See docs/how-to/deleted-topic.md.

    IMAGES are block devices, or raw copies of them. `carve` reads them once and needs no file system. It finds batches
    of format 2, also compressed ones; --legacy also finds messages of older formats. It can't find them on encrypted
    disks or in file systems that compress files.

    Each partition gets a directory: carved-0001-0, carved-0002-0 and so on, by position. Batches don't name their
    partition. `carve` puts pieces together only if a CRC, or offsets in one place, prove that they belong together.
    So a partition may be in several directories, but no directory has records of two partitions.

    Internal topics get their names by the formats of their records; --metadata DIR helps with a log directory of the
    cluster. Old checkpoints name partitions by the boundaries of their batches. --like DIR names
    partitions by older or other copies: two equal batches prove a name. --name gives a name that you found out.
    Directories of one name become one; if their offsets overlap, the smaller one gets a suffix, such as orders-0.2.

    If ext4 or xfs has left lists of a file's blocks, --hints auto links pieces that follow each other in one, provided
    that their offsets agree, and joins batches of any number of pieces by their CRCs. --hints none ignores the lists.
    --likely also puts unnamed partitions together where pieces fit each other alone, without proof: look for mistakes
    in them.

    DIR also gets carve.jsonl: the SHA-256 of inputs and outputs, and the place of each batch in the images. --check
    compares all three again, with the images at IMAGES if they have moved. The exit status is 1 if pieces have no place
    or bytes can't be read, and 2 if there are no batches.
    """
    talk = options.talk
    if options.check is not None:
        _check(options.check, options)
        return
    if not options.paths:
        raise click.UsageError("missing argument 'IMAGE...'")
    target = new_directory_of(options.directory, dry_run=options.dry_run, beside=(*options.like, *options.metadata))
    with Images(options.paths, options.start, options.size) as images:
        if not options.force:
            for text in check_obstacles(images):
                talk.warn(text)
            if options.directory is not None:
                check_other_device(images, options.directory)
        with target as unfinished, talk.bar() as bar:
            on_read = bar.counting("carve", sum(image.size for image in images))
            carving = carve_images(images, _settings(options, on_read), on_read)
            if not len(carving.scan.batches) and not carving.chains:
                raise OpenError(
                    "has no batches; see `kseg help carve` for disks that can't be carved", options.paths[0]
                )
            if not carving.partitions and carving.others:
                raise OpenError(
                    "has no partitions of the chosen topics; list partitions by --dry-run", options.paths[0]
                )
            _write(carving, unfinished, form_named(options.output), talk)
        flush_stdout()
        talk.end_with(not carving.is_complete)


def _check(path: Path, options: CarveOptions) -> None:
    """Check the evidence of an earlier run."""
    checked = check_evidence(path, options.paths)
    form = form_named(options.output)
    for each in checked.disagreements:
        if form.has_objects:
            form.write_object({"type": "disagreement", "file": each.file, "problem": each.problem})
        else:
            write_line(f"{each.file}: {each.problem}")
    if not options.talk.is_quiet:
        if form.has_objects:
            form.write_object({"type": "checked", "fileCount": checked.files, "batches": checked.batches})
        else:
            write_line(checked_line(checked))
    flush_stdout()
    options.talk.end_with(bool(checked.disagreements))


def _settings(options: CarveOptions, expected: Count) -> CarveSettings:
    like = tuple(Cluster(options.like, options.talk.refuse).directories()) if options.like else ()
    expected.expect(sum(partition.size for partition in like))
    return CarveSettings(
        block=options.block_size,
        least_batches=options.min_batches,
        is_hashed=not options.no_hash and not options.dry_run,
        is_legacy=options.legacy,
        like=like,
        given=dict(options.names),
        metadata=_metadata_records(options),
        has_hints=options.hints == "auto",
        has_likely=options.likely,
        choice=PartitionChoice(options.topics),
    )


def _metadata_records(options: CarveOptions) -> Iterator[Record]:
    """Yield the records of all metadata logs in the directories of --metadata."""
    directories = dict.fromkeys(
        path / f"{METADATA_TOPIC}-0" for path in Cluster(options.metadata, options.talk.refuse).metadata_dirs()
    )
    for directory in directories:
        if directory.is_dir():
            yield from records_of_log(PartitionLog(directory))


def _write(carving: Carving, directory: Path | None, form: Form, talk: Talk) -> None:
    """Write partitions and evidence, and report them; without a directory, only report them."""
    written: list[WrittenSegment] = []
    for partition in carving.partitions:
        segments = [
            WrittenSegment(each, None if directory is None else write_segment(carving.runs, each, directory))
            for each in segments_of(carving.runs, partition)
        ]
        written += segments
        completeness = completeness_of(carving.runs, partition, carving.ends)
        if form.has_objects:
            form.write_object(partition_object(partition, segments, completeness))
        elif not talk.is_quiet:
            write_lines(partition_lines(partition, segments, completeness))
    if directory is not None:
        arguments = click.get_current_context().find_root().obj or ()
        write_evidence(carving, written, current_circumstances(arguments), directory)
    if form.has_objects and not talk.is_quiet:
        form.write_object({"type": "summary", **total_of(carving)})
    elif not form.has_objects and not (talk.is_quiet and carving.is_complete):
        write_lines(total_lines(carving))
