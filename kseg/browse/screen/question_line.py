"""The line in which something is asked: what to go to, what to search for."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static


class QuestionLine(Horizontal):
    """A question and its answer; the last answer stands there again the next time."""

    DEFAULT_CSS = """
    QuestionLine { display: none; height: 1; }
    QuestionLine.-asked { display: block; }
    QuestionLine > Static { width: auto; padding: 0 1; color: $text-accent; }
    QuestionLine > Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "close", "close")]

    class Closed(Message):
        """There is an answer, or None."""

        def __init__(self, name: str, text: str | None) -> None:
            super().__init__()
            self.name = name
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._asked = ""
        self._answers: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """The question, and what is answered."""
        yield Static(markup=False)
        yield Input(compact=True)

    def ask(self, name: str, text: str) -> None:
        """Asks the question of this name."""
        self._asked = name
        self.add_class("-asked")
        self.query_one(Static).update(text)
        answer = self.query_one(Input)
        answer.value = self._answers.get(name, "")
        answer.focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Hands the answer on."""
        message.stop()
        self._answers[self._asked] = message.value.strip()
        self._close(message.value.strip())

    def action_close(self) -> None:
        """Closes the question without an answer."""
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-asked")
        self.post_message(self.Closed(self._asked, text))
