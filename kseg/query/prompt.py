"""The prompt of `kseg query`: answers to SQL, and completion."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kseg.errors import ClosedPipeError, KsegError, plural
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk, talk
from kseg.output.streams import flush_stdout, write_line
from kseg.query.session import QuerySession
from kseg.system.signals import was_asked_to_end
from kseg.text.query import SCANS, AnswerWriter

_DELIMITERS = " \t\n()[]{},;:=<>!|&+-*/%'."
_MOST = 500
"""The most completions offered."""


def completer(words: Sequence[str]) -> Callable[[str, int], str | None]:
    """Return a function for readline, which returns the nth completion of a prefix, then None."""

    def complete(beginning: str, number: int) -> str | None:
        small = beginning.lower()
        found = [word for word in words if word.lower().startswith(small)][:_MOST]
        return found[number] if number < len(found) else None

    return complete


@contextmanager
def complete_words(words: Sequence[str]) -> Iterator[None]:
    """Let `input` complete words at a terminal, if the system has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(completer(words))
    readline.set_completer_delims(_DELIMITERS)
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)


PROMPT, MORE = "kseg> ", "  ... "
_HELP = (
    "Enter SQL that ends with a semicolon. `show tables;` lists tables, `describe NAME;` lists columns. Ctrl-D quits."
)
_ENDS = ("exit", "quit", r"\q", ".exit", ".quit")
_HELPS = ("help", "?", r"\?", ".help")


class Dialogue:
    """A dialogue with a session. status: 1 if data was missing in an answer, else 0."""

    def __init__(self, session: QuerySession, writer: AnswerWriter, *, quiet: bool) -> None:
        """Take the session and the writer of its answers; quiet: whether to omit notes."""
        self.status = 0
        self._session = session
        self._writer = writer
        self._note = Talk(is_quiet=quiet).note
        self._said: set[str] = set()

    def answer(self, sql: str) -> None:
        """Print the answers to SQL, and missing data on stderr. Raises UsageError for invalid SQL."""
        try:
            for answer in self._session.answers(sql):
                try:
                    self._writer.write(answer.schema, answer.batches)
                finally:
                    answer.close()
                flush_stdout()
        finally:
            self._say()

    def explain(self, sql: str) -> None:
        """Print the reads that a query would make. Raises UsageError for invalid SQL."""
        RowWriter(self._writer.form).write(SCANS, self._session.scans(sql))
        flush_stdout()
        self._say()

    def _say(self) -> None:
        log = self._session.log
        for text in log.damages:
            if text not in self._said:
                talk(f"kseg: {text}")
        for text in log.notes:
            if text not in self._said:
                self._note(text)
        self._said |= {*log.damages, *log.notes}
        self.status = max(self.status, int(bool(log.damages)))

    def hold(self) -> None:
        """Read SQL line by line until the end of input; print errors and continue."""
        self._note(_HELP)
        with complete_words(self._session.words()):
            while (sql := self._next()) is not None:
                self._answer_or_complain(sql)

    def _answer_or_complain(self, sql: str) -> None:
        try:
            self.answer(sql)
            if self._writer.form.is_for_people:
                write_line(f"({plural(self._writer.count, 'row')})")
                flush_stdout()
        except ClosedPipeError:
            raise
        except KsegError as error:
            talk(f"kseg: {error}")
        except KeyboardInterrupt:
            if was_asked_to_end():
                raise
            talk("kseg: interrupted")

    def _next(self) -> str | None:
        """Return the next statement, which may have several lines; None at the end."""
        lines: list[str] = []
        while True:
            try:
                line = input(MORE if lines else PROMPT)
            except EOFError:
                write_line("")
                flush_stdout()
                return None
            except KeyboardInterrupt:
                if was_asked_to_end():
                    raise
                talk("")
                lines = []
                continue
            word = line.strip().rstrip(";").lower()
            if not lines and word in _ENDS:
                return None
            if not lines and word in _HELPS:
                talk(_HELP)
            elif word or lines:
                lines.append(line)
                if line.rstrip().endswith(";"):
                    return "\n".join(lines)
