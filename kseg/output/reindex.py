"""Rebuilt indexes and side files, in lines."""

from collections.abc import Iterator

from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.side_files import SideFile
from kseg.log.reindex import Reindexed


def reindexed_lines(each: Reindexed) -> Iterator[str]:
    """How a segment's indexes compare with the rebuilt ones; and where these end, if the log is damaged."""
    compared = ", ".join(f"{extension} {comparison}" for extension, comparison in each.compared.items())
    yield f"{each.segment.path}: {compared}"
    if each.damage is not None:
        yield (
            f"{each.segment.path}: at position {each.damage.position}: {each.damage.kind}: the indexes end here;"
            " `kseg salvage` continues after it"
        )


def side_file_line(partition: PartitionLog, file: SideFile) -> str:
    """Why a file beside the segments is rebuilt, or what it would take."""
    detail = f" ({file.detail})" if file.detail else ""
    outcome = "" if file.content is not None else "; --cluster-metadata may have its contents"
    return f"{partition.path / file.name}: {file.reason}{detail}{outcome}"
