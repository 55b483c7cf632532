"""The form in which rows are printed, and what goes with it: colours, safe CSV, the zone of times."""

from dataclasses import dataclass
from datetime import UTC, tzinfo

from kseg.output.csv import check_csv_safe


@dataclass(frozen=True, slots=True)
class OutputForm:
    """A form: text, json, csv or table.

    color: None lets the terminal and NO_COLOR decide. csv_safe: no spreadsheet evaluates a text as a formula; raises
    UsageError with another form. zone: of printed times.
    """

    name: str
    color: bool | None = None
    csv_safe: bool = False
    zone: tzinfo = UTC

    def __post_init__(self) -> None:
        """Refuses what doesn't go together."""
        check_csv_safe(self.csv_safe, self.name)

    @property
    def is_for_people(self) -> bool:
        """Whether it is text or a table."""
        return self.name in ("text", "table")
