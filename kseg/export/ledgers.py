"""Which truth a destination has: the manifest, or the log of a table by the library of its format."""

from kseg.export.destination import Destination
from kseg.export.ledger import Ledger, ManifestLedger
from kseg.export.settings import FileOptions, TableFormat
from kseg.export.table_ledger import TableLedger
from kseg.export.table_log import TableLog, TableName
from kseg.system.known_processes import Processes


def ledger_of(
    place: Destination,
    processes: Processes,
    table: TableName,
    files: FileOptions,
    *,
    overwrite: bool,
) -> Ledger:
    """The ledger of a destination. Raises UsageError if the format's library isn't installed, or lacks something."""
    if files.table_format is TableFormat.PARQUET:
        return ManifestLedger(place, processes)
    return TableLedger(place, table_log(place, table, files), processes, overwrite=overwrite)


def table_log(place: Destination, table: TableName, files: FileOptions) -> TableLog:
    """The log of the table at a destination."""
    if files.table_format is TableFormat.DELTA:
        from kseg.export.delta import DeltaLog

        return DeltaLog(place, files)
    from kseg.export.iceberg import IcebergLog

    return IcebergLog(place, files, table)
