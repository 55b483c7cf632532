"""DescribeLogDirs: the log directories, the partitions in them with their sizes, and the disks' room."""

import shutil
from collections import defaultdict
from pathlib import Path

from kseg.errors import KsegError
from kseg.formats.messages import Fields
from kseg.serve.apis.api_request import ApiAnswer, ApiRequest
from kseg.serve.error_code import ErrorCode
from kseg.serve.served_partition import ServedPartition


def answer_describe_log_dirs(request: ApiRequest) -> ApiAnswer:
    """All log directories, with the partitions that are asked for. None lags: nobody appends to them."""
    wanted = _wanted(request.body["topics"])
    inside: dict[Path, list[ServedPartition]] = defaultdict(list)
    for partition in request.served.partitions:
        if partition.listed is not None and (wanted is None or (partition.topic, partition.number) in wanted):
            inside[partition.listed.log_dir].append(partition)
    results = [_log_dir(path, inside[path]) for path in request.served.log_dirs]
    return ApiAnswer({"results": results}, f"{len(results)} log directories")


def _wanted(topics: list[Fields] | None) -> set[tuple[str, int]] | None:
    """The partitions that are asked for; None for all."""
    if topics is None:
        return None
    return {(topic["topic"], number) for topic in topics for number in topic["partitions"]}


def _log_dir(path: Path, partitions: list[ServedPartition]) -> Fields:
    topics: dict[str, list[Fields]] = defaultdict(list)
    try:
        usage = shutil.disk_usage(path)
        for each in partitions:
            topics[each.topic].append({"partitionIndex": each.number, "partitionSize": each.size()})
    except (OSError, KsegError):
        return {"errorCode": ErrorCode.KAFKA_STORAGE_ERROR, "logDir": str(path), "topics": []}
    return {
        "logDir": str(path),
        "topics": [{"name": name, "partitions": found} for name, found in topics.items()],
        "totalBytes": usage.total,
        "usableBytes": usage.free,
    }
