"""What every opened path has: its records, batches and tables."""

import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Self, Unpack, cast

from kseg.api.asked import DecodedOptions, TableOptions, asked_selection
from kseg.api.short_table import ShortTable
from kseg.kernel.record import Record
from kseg.log.select.record_picker import SelectedLog
from kseg.log.select.selected_records import selected_batches, selected_records
from kseg.reading.batch import Batch, OnDamage, check_on_damage
from kseg.selection import Selection, SelectionOptions

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from kseg.api.decoded_record import DecodedRecord


class Logs(ABC):
    """Logs that are open: their records, batches and tables; a context manager.

    Records are selected by a `kseg.Selection`, by keywords with the names of the commands' options, or both: then what
    the keywords ask counts. Damage raises DamagedError, unless `on_damage` says otherwise: "skip" leaves out what is
    damaged, and a function is called with each Damage before reading goes on without it.
    """

    def __init__(self) -> None:
        self._at_close = ExitStack()
        self._close = weakref.finalize(self, self._at_close.close)

    @abstractmethod
    def _selected(self, selection: Selection) -> Iterator[SelectedLog]:
        """The logs that may hold selected records, one after another; it keeps this alive until its end."""

    @abstractmethod
    def _table(self) -> ShortTable:
        """What is shown of it."""

    def close(self) -> None:
        """Closes what is open, and removes what was unpacked of an archive."""
        self._close()

    def close_with(self, resources: AbstractContextManager[object]) -> None:
        """Lets resources be released when this is closed, or collected as garbage."""
        self._at_close.enter_context(resources)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        """A short table."""
        return self._table().text()

    def _repr_html_(self) -> str:
        """The same, for notebooks."""
        return self._table().html()

    def records(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[SelectionOptions]
    ) -> Iterator[Record]:
        """The selected records, in the order of their logs; few are in memory at once.

        Control records are left out, unless `control` is True, for them alone, or None, for all.

        Raises:
            DamagedError: at damage, after the records before it, unless `on_damage` says otherwise.
            OpenError: a file can't be opened.
            UsageError: a selection can't be.
        """
        check_on_damage(on_damage)
        logs = self._selected(asked_selection(selection, options, has_control=False))
        return chain.from_iterable(chain.from_iterable(selected_records(log, on_damage) for log in logs))

    def decoded_records(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[DecodedOptions]
    ) -> "Iterator[DecodedRecord]":
        """The same with keys and values decoded, by `key_decoder` and `value_decoder`.

        What doesn't decode is no damage: the record says why. Raises as `records` does; UsageError too if there is no
        such decoder, or its library is missing.
        """
        from kseg.api.decoded_record import decoded_records

        check_on_damage(on_damage)
        logs = self._selected(asked_selection(selection, options, has_control=False))
        records = chain.from_iterable(selected_records(log, on_damage) for log in logs)
        return decoded_records(chain.from_iterable(records), options)

    def batches(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[SelectionOptions]
    ) -> Iterator[Batch]:
        """The batches that hold selected records, control batches too.

        Damage inside a batch isn't met here, but by its own `records`. Raises as `records` does.
        """
        check_on_damage(on_damage)
        logs = self._selected(asked_selection(selection, options, has_control=True))
        return chain.from_iterable(selected_batches(log, on_damage) for log in logs)

    def to_arrow(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pa.RecordBatchReader":
        """The selected records as a `pyarrow.RecordBatchReader`, which is read once and holds little in memory.

        The columns are those of `kseg export`: key, value, topic, partition, offset, timestamp, timestampType, headers;
        and with decoders decodedKey and decodedValue, which are null where nothing decodes. Raises as
        `decoded_records` does; damage is met while the reader is read.
        """
        from kseg.api.record_tables import arrow_reader

        check_on_damage(on_damage)
        logs = self._selected(asked_selection(selection, options, has_control=False))
        return arrow_reader(logs, options, on_damage)

    def to_pandas(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pd.DataFrame":
        """The same as a `pandas.DataFrame`, in memory as a whole."""
        from kseg.api.record_tables import needed

        needed("pandas", "pip install pandas")
        return self.to_arrow(selection, on_damage=on_damage, **options).read_pandas()

    def to_polars(
        self, selection: Selection | None = None, *, on_damage: OnDamage = "raise", **options: Unpack[TableOptions]
    ) -> "pl.DataFrame":
        """The same as a `polars.DataFrame`, in memory as a whole."""
        from kseg.api.record_tables import needed

        polars = needed("polars", "pip install polars")
        table = self.to_arrow(selection, on_damage=on_damage, **options).read_all()
        return cast("pl.DataFrame", polars.from_arrow(table))
