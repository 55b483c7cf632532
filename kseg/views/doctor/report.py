"""Writes what the doctor found, also if somebody interrupts it."""

from collections.abc import Callable, Iterator
from types import TracebackType

from kseg.output.json_lines import write_json
from kseg.output.styled_lines import StyledLine, write_styled_lines
from kseg.views.doctor.objects import check_up_objects
from kseg.views.doctor.page import page, serious_lines
from kseg.views.doctor.trouble import CheckUp


class DoctorReport:
    """Writes a check-up when it is left, so that whoever interrupts it sees what was found until then."""

    def __init__(
        self, form: str, result: Callable[[], CheckUp], *, verbose: bool, quiet: bool, color: bool | None
    ) -> None:
        """Takes text or json; what gives the check-up; how much is wanted; colours, None: the terminal's.

        verbose: every place, topic and note. quiet: nothing but findings, in text only those that count. is_complete:
        whether all was examined.
        """
        self._is_json = form == "json"
        self._result = result
        self._verbose = verbose
        self._quiet = quiet
        self._color = color
        self.is_complete = False

    def __enter__(self) -> "DoctorReport":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        found = self._result()
        if not (found.partitions or found.troubles or self.is_complete or self._is_json):
            return  # nothing could be opened, as stderr says
        if self._is_json:
            for each in check_up_objects(found, is_complete=self.is_complete, quiet=self._quiet):
                write_json(each)
            return
        write_styled_lines(self._lines(found), color=self._color)

    def _lines(self, found: CheckUp) -> Iterator[StyledLine]:
        if self._quiet:
            return serious_lines(found, verbose=self._verbose)
        return page(found, is_complete=self.is_complete, verbose=self._verbose)
