"""The objects of a folder in S3, listed by several requests at once: each gives a thousand, and names the next.

The first answer says how many folders there are among a thousand objects. If it isn't all, folders are asked for, which
takes a request for a thousand of them; what lies between two of them, so far apart that it takes a few requests, is
listed by itself.
"""

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from xml.etree import ElementTree

from kseg.system.in_threads import in_threads

AT_ONCE = 16
"""Requests that are under way at the same time."""
REQUESTS_OF_RANGE = 4
"""About how many requests a range of keys takes: few enough to share, and many enough for what a range asks in vain."""
FEW_FOLDERS = 16
"""So few folders are looked into for theirs: brokers' or disks', not partitions."""
MOST_LEVELS = 3


class S3Object(NamedTuple):
    """An object: its key, bytes, and milliseconds since 1970 of its last change."""

    key: str
    size: int
    modified_ms: int


class S3Folder:
    """A bucket's objects whose keys begin with a prefix. Errors are botocore's."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket, self._prefix = bucket, prefix
        self._client = s3_client()

    def objects(self) -> Iterator[S3Object]:
        """All of them, by key."""
        answer = self._ask()
        first = [_object(found) for found in answer.get("Contents", ())]
        yield from first
        if not answer["IsTruncated"]:
            return
        folders = {found.key.rpartition("/")[0] for found in first}
        per_range = max(REQUESTS_OF_RANGE * len(folders), 1)
        for found in in_threads(lambda ends: self._listed(*ends), self._ranges(first[-1].key, per_range), AT_ONCE):
            yield from found

    def _ranges(self, above: str, per_range: int) -> Iterator[tuple[str, str | None]]:
        """Ranges of keys that follow each other: from above the first, up to the second."""
        for number, folder in enumerate(self._folders(self._prefix, above, MOST_LEVELS), 1):
            if number % per_range == 0 and folder > above:
                yield above, folder
                above = folder
        yield above, None

    def _folders(self, prefix: str, above: str, levels: int) -> Iterator[str]:
        """Folders below a prefix, in order; where they are few, those below them."""
        answer = self._ask(Prefix=prefix, Delimiter="/", StartAfter=above)
        folders = [each["Prefix"] for each in answer.get("CommonPrefixes", ())]
        if not answer["IsTruncated"] and len(folders) < FEW_FOLDERS and levels:
            for folder in folders:
                yield folder
                yield from self._folders(folder, above, levels - 1)
            return
        yield from folders
        while folders and answer["IsTruncated"]:
            answer = self._ask(Prefix=prefix, Delimiter="/", ContinuationToken=answer["NextContinuationToken"])
            yield from (each["Prefix"] for each in answer.get("CommonPrefixes", ()))

    def _listed(self, above: str, end: str | None) -> list[S3Object]:
        """The objects of a range."""
        found: list[S3Object] = []
        wanted = {"StartAfter": above}
        while True:
            answer = self._ask(**wanted)
            found += (_object(each) for each in answer.get("Contents", ()))
            is_past = end is not None and bool(found) and found[-1].key > end
            if is_past or not answer["IsTruncated"]:
                return [each for each in found if above < each.key and (end is None or each.key <= end)]
            wanted = {"ContinuationToken": answer["NextContinuationToken"]}

    def _ask(self, **wanted: str) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.list_objects_v2(
            **{"Bucket": self._bucket, "Prefix": self._prefix, **wanted}
        )
        return answer


def _object(found: dict[str, Any]) -> S3Object:
    return S3Object(found["Key"], found["Size"], int(found["LastModified"].timestamp() * 1000))


def s3_client() -> Any:
    """Botocore's client, which finds credentials where pyarrow does. Raises ImportError without botocore."""
    from botocore.config import Config
    from botocore.session import get_session

    endpoint = os.environ.get("AWS_ENDPOINT_URL") or None
    region = os.environ.get("AWS_REGION", os.environ.get("AWS_DEFAULT_REGION"))
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(max_pool_connections=AT_ONCE, s3=style)
    client = get_session().create_client("s3", region_name=region, endpoint_url=endpoint, config=config)
    client.meta.events.register("before-parse.s3.ListObjectsV2", _parse)
    return client


def _parse(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Reads an answer in botocore's place, which takes ten times as long for it; gives what botocore would."""
    if response_dict["status_code"] != 200:
        return
    root = ElementTree.fromstring(response_dict["body"])  # noqa: S314  the store is trusted as far as by botocore
    names = root.tag.removesuffix("ListBucketResult")
    contents = [{part.tag: part.text for part in each} for each in root.iterfind(f"{names}Contents")]
    key, size, modified = (f"{names}{name}" for name in ("Key", "Size", "LastModified"))
    customized_response_dict.update(
        Contents=[
            {
                "Key": each[key],
                "Size": int(each[size] or 0),
                "LastModified": datetime.fromisoformat(each[modified] or ""),
            }
            for each in contents
        ],
        CommonPrefixes=[{"Prefix": each.text} for each in root.iterfind(f"{names}CommonPrefixes/{names}Prefix")],
        IsTruncated=root.findtext(f"{names}IsTruncated") == "true",
        NextContinuationToken=root.findtext(f"{names}NextContinuationToken"),
        EncodingType=root.findtext(f"{names}EncodingType"),
    )
    response_dict["body"] = b"<ListBucketResult/>"
