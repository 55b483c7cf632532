"""What the doctor found as objects of `-o json`."""

from collections.abc import Iterator

from kseg.findings.finding_kinds import Severity
from kseg.views.doctor.trouble import CheckUp, Trouble


def check_up_objects(found: CheckUp, *, is_complete: bool, quiet: bool = False) -> Iterator[dict[str, object]]:
    """Findings; unless it is to be quiet disks, topics, and a summary too."""
    yield from map(trouble_object, found.troubles)
    if quiet:
        return
    for disk in found.disks:
        directories = list(map(str, disk.log_dirs))
        yield {"type": "disk", "directories": directories, "bytes": disk.size, "availableBytes": disk.available}
    for use in found.topics:
        yield {
            "type": "topic",
            "topic": use.topic,
            "partitions": use.partitions,
            "segments": use.segments,
            "bytes": use.size,
            "bytesToDelete": use.due,
        }
    result = ("ok" if is_complete else "incomplete") if found.is_well else "findings"
    counts = {f"{severity}s": found.count(severity) for severity in Severity}
    sizes = {"partitions": found.partitions, "bytes": found.size, "bytesRead": found.read, "quick": found.is_quick}
    yield {"type": "summary", "result": result, **sizes, **counts}


def trouble_object(each: Trouble) -> dict[str, object]:
    """A trouble for JSON."""
    return {
        "type": "finding",
        "id": each.id,
        "severity": str(each.severity),
        "file": str(each.file),
        "topic": each.topic,
        "partition": each.partition,
        "position": each.position,
        "firstOffset": each.first_offset,
        "lastOffset": each.last_offset,
        "producerId": each.producer_id,
        "bytes": each.size,
        "heldBack": each.held_back,
        "sentence": each.sentence,
        "command": each.command,
    }
