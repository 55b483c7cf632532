"""The evidence of a carving, `carve.jsonl`: the place of each byte in the images, and everything that has no place."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kseg.carve.carving import Carving
from kseg.carve.chains import Part, Rows
from kseg.carve.joins import How, LinkKind
from kseg.carve.names import Name
from kseg.carve.segments import CarvedSegment, pieces_of
from kseg.output.evidence import Circumstances, HashedInput, input_object
from kseg.reading.batch import BatchHeader

EVIDENCE_NAME = "carve.jsonl"
"""The file with the evidence, in the output directory."""
Line = dict[str, Any]
"""A line of the file, as an object."""


class WrittenSegment(NamedTuple):
    """A segment of the output, and the SHA-256 of its log; None if it isn't written."""

    segment: CarvedSegment
    sha256: str | None


def write_evidence(
    carving: Carving, written: list[WrittenSegment], circumstances: Circumstances, directory: Path
) -> None:
    """Write the evidence; only its owner can read it. Raises OSError if the system can't write."""
    with (directory / EVIDENCE_NAME).open("x", encoding="utf-8") as file:
        (directory / EVIDENCE_NAME).chmod(0o600)
        for text in _texts(carving, written, circumstances):
            file.write(f"{text}\n")


def _texts(carving: Carving, written: list[WrittenSegment], circumstances: Circumstances) -> Iterator[str]:
    yield from map(json.dumps, _input_lines(carving, circumstances))
    for each in written:
        yield json.dumps({"type": "file", "file": each.segment.name, "size": each.segment.size, "sha256": each.sha256})
        yield from _batch_texts(carving, each.segment)
    yield from map(json.dumps, _lines_without_file(carving))
    yield json.dumps({"type": "total", **total_of(carving)})


def _input_lines(carving: Carving, circumstances: Circumstances) -> Iterator[Line]:
    for number, (image, sha256) in enumerate(carving.scan.images):
        found = HashedInput(str(image.path), image.size, sha256)
        yield {
            **input_object(number, found, circumstances),
            "from": image.start,
            "blockSize": carving.blocks.size,
            "blockStart": (carving.blocks.phase - image.base + image.start) % carving.blocks.size,
        }


def _batch_texts(carving: Carving, segment: CarvedSegment) -> Iterator[str]:
    """Yield a line per batch, which gives back its bytes: `rebuilt`, then the ranges of the inputs."""
    position, file = 0, json.dumps(segment.name)
    for part in segment.parts:
        for header, how, rebuilt, ranges in _batches_of(carving, part):
            yield (
                f'{{"type": "batch", "file": {file}, "position": {position}, "size": {header.size}, "baseOffset": '
                f'{header.first_offset}, "crc": {header.crc}, "how": "{how}"{rebuilt}, "ranges": {ranges}}}'
            )
            position += header.size


def _batches_of(carving: Carving, part: Part) -> Iterator[tuple[BatchHeader, How, str, str]]:
    if isinstance(part, Rows):
        headers = carving.runs.batches.headers(part.first, part.last)
        image, origin = carving.runs.images.origin_of(carving.runs.batches.header(part.first).position)
        for header in headers:
            yield header, How.WHOLE, "", f"[[{image}, {header.position + origin}, {header.end + origin}]]"
    else:
        rebuilt = f', "rebuilt": "{part.rebuilt.hex()}"' if part.rebuilt else ""
        yield part.header, part.how, rebuilt, json.dumps(_ranges(carving, part.pieces))


def _ranges(carving: Carving, pieces: tuple[tuple[int, int], ...]) -> list[tuple[int, int, int]]:
    """Return input, start and end of each piece."""
    found = []
    for start, end in pieces:
        image, origin = carving.runs.images.origin_of(start)
        found.append((image, start + origin, end + origin))
    return found


def _lines_without_file(carving: Carving) -> Iterator[Line]:
    yield from _link_lines(carving)
    yield from _name_lines(carving)
    yield from _left_out_lines(carving)
    directories = carving.directories()
    for each in carving.unplaced:
        yield {
            "type": "unplaced",
            "kind": each.kind,
            "ranges": _ranges(carving, ((each.start, each.end),)),
            "baseOffset": each.base_offset,
            "nextOffset": each.next_offset,
            "size": each.size,
            "nextTo": directories.get(each.run),
        }
    for number, (image, _) in enumerate(carving.scan.images):
        for found in image.unreadable:
            yield {"type": "unreadable", "ranges": [(number, found.start, found.end)], "reason": found.reason}


def _link_lines(carving: Carving) -> Iterator[Line]:
    runs, joins = carving.runs, carving.joins
    links = [(link.before, after, link.kind) for after, link in joins.links.items()]
    links += [(before, after, LinkKind.LIKELY) for before, after in joins.likely]
    for before, after, kind in sorted(links, key=lambda link: (link[1], link[0])):
        ends = _ranges(carving, ((runs.runs[before].end, runs.runs[before].end), (runs.runs[after].start,) * 2))
        yield {"type": "link", "kind": kind, "from": ends[0][:2], "to": ends[1][:2]}


def _name_lines(carving: Carving) -> Iterator[Line]:
    for unnamed, name in carving.names:
        ids = carving.topics.ids_of(name.directory.rpartition("-")[0])
        yield {"type": "name", "chain": unnamed, **_as_object(name), "topicIds": ids}
    for unnamed, names in carving.contradictions:
        yield {"type": "contradiction", "chain": unnamed, "names": list(map(_as_object, names))}


def _as_object(name: Name) -> Line:
    return {"directory": name.directory, "kind": name.kind, **name.facts}


def _left_out_lines(carving: Carving) -> Iterator[Line]:
    """Yield copies of batches, and partitions that aren't written."""
    for partition in carving.partitions:
        for part in partition.copies:
            yield {
                "type": "copy",
                "directory": partition.directory,
                "batches": part.last - part.first if isinstance(part, Rows) else 1,
                "ranges": _ranges(carving, pieces_of(carving.runs, part)),
            }
    for reason, partitions in (("few", carving.few), ("other", carving.others)):
        for partition in partitions:
            pieces = tuple(piece for part in partition.parts for piece in pieces_of(carving.runs, part))
            line = {"type": reason, "directory": partition.directory, "batches": partition.batch_count}
            yield {**line, "ranges": _ranges(carving, pieces)}


def total_of(carving: Carving) -> dict[str, int]:
    """Return the sums of a carving. joinedBatches: of the batches in partitions, those from several places."""
    parts = [part for partition in carving.partitions for part in partition.parts]
    return {
        "foundBatches": len(carving.scan.batches),
        "partitions": len(carving.partitions),
        "batches": sum(partition.batch_count for partition in carving.partitions),
        "joinedBatches": sum(not isinstance(part, Rows) for part in parts),
        "copyCount": sum(partition.copy_count for partition in carving.partitions),
        "unplaced": len(carving.unplaced),
        "unreadable": sum(len(image.unreadable) for image, _ in carving.scan.images),
    }
