"""The columns of what a query would read: a row for each table that it names."""

from kseg.output.row_writer import NOT_SHOWN, Section
from kseg.output.table import TableColumn
from kseg.query.query_log import Scan


def _share(part: int | None, whole: int | None) -> str:
    return "" if part is None or whole is None else f"{part} of {whole}"


def _offsets(scan: Scan) -> str:
    """The offsets that are wanted, if they are the same in all partitions, and not all of them."""
    wanted = {(order.offsets.first, order.offsets.end) for order in scan.orders}
    if not wanted or wanted == {(None, None)}:
        return ""
    if len(wanted) > 1:
        return "by partition"
    ((first, end),) = wanted
    return f"{'' if first is None else first} to {'' if end is None else end - 1}".strip()


_SCAN_COLUMNS: tuple[TableColumn[Scan], ...] = (
    TableColumn("table", "TABLE", -1, lambda row: row.table),
    TableColumn("columns", "COLUMNS", -1, lambda row: list(row.columns), lambda row: ",".join(row.columns)),
    TableColumn(
        "partitions", "PARTITIONS", 1, lambda row: row.partitions, lambda row: _share(row.partitions, row.those_in_all)
    ),
    TableColumn("partitionsInAll", NOT_SHOWN, 1, lambda row: row.those_in_all),
    TableColumn("offsets", "OFFSETS", -1, _offsets),
    TableColumn("bytes", "BYTES", 1, lambda row: row.size, lambda row: _share(row.size, row.size_in_all)),
    TableColumn("bytesInAll", NOT_SHOWN, 1, lambda row: row.size_in_all),
    TableColumn("condition", "ROWS WHERE", -1, lambda row: row.condition),
)
SCANS: Section[Scan] = Section("scan", None, _SCAN_COLUMNS)
