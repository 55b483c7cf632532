"""Names of datasets after OpenLineage's naming conventions.

Source: OpenLineage's specification, "Naming Conventions".
"""

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.export.report import PartitionReport
from kseg.store.location import is_remote


class DatasetName(NamedTuple):
    """The identity of a dataset: the namespace of its data store, and its name there."""

    namespace: str
    name: str


def name_of_place(place: str) -> DatasetName:
    """Return the name of a directory or URL.

    An Azure container without its account in the URL belongs to the account of AZURE_STORAGE_ACCOUNT.
    """
    if not is_remote(place):
        return DatasetName("file", str(Path(place).absolute()))
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    account = os.environ.get("AZURE_STORAGE_ACCOUNT")
    if scheme == "az" and account:
        scheme, authority = "abfss", f"{authority}@{account}.dfs.core.windows.net"
    return DatasetName(f"{scheme}://{authority}", path.strip("/") or "/")


def names_of_sources(partitions: Iterable[PartitionReport], kafka: str | None) -> list[DatasetName]:
    """Return the read topics: by a broker's address, or by the directories of their partitions.

    kafka: HOST:PORT of a bootstrap server. Without one, a directory's partitions of a topic are one dataset, such as
    `/var/kafka-logs/orders`.
    """
    found: dict[DatasetName, None] = {}
    for each in partitions:
        if kafka is not None:
            found[DatasetName(f"kafka://{kafka}", each.topic)] = None
            continue
        for copy in each.copies:
            place = name_of_place(copy)
            found[place._replace(name=str(PurePosixPath(place.name).parent / each.topic))] = None
    return list(found)


def schema_fields(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    """Return columns with the types of Arrow, and the members of structs below them."""
    return [_schema_field(each.name, each.type) for each in fields]


def _schema_field(name: str, kind: pa.DataType) -> dict[str, Any]:
    inner = kind
    while pa.types.is_list(inner) or pa.types.is_large_list(inner):
        inner = inner.value_type
    if not pa.types.is_struct(inner):
        return {"name": name, "type": str(kind)}
    return {"name": name, "type": "struct" if inner is kind else "list", "fields": schema_fields(inner)}
