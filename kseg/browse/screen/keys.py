"""The keys of `kseg browse`: one table for the screen, its help and the tests of its page."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key, the action that it stands for, a word for the line of keys (none: it isn't there), and what it does."""

    keys: str
    action: str
    word: str
    meaning: str


KEYS = (
    Key("o", "ask('offset')", "offset", "go to an offset"),
    Key("t", "ask('time')", "time", "go to the first record from a time on: 2026-11-01T03:00, -1h"),
    Key("p", "ask('position')", "position", "go to the batch, entry or line at a position in the file"),
    Key("d", "damage", "damage", "go to the next damage, also in later segments and topics"),
    Key("slash", "ask('search')", "search", "search keys and values for a regular expression"),
    Key("n", "again", "", "search for the next match"),
    Key("v", "ask('value')", "decode", "choose the decoder of values: json, avro, int64, …"),
    Key("V", "ask('key')", "", "choose the decoder of keys"),
    Key("c", "copy", "", "copy the field, the row or the lit bytes, also over ssh"),
    Key("e", "ask('export')", "export", "write the fields of the row as JSON to a new file"),
    Key("z", "zoom", "zoom", "give one pane the whole screen, and back"),
    Key("r", "look_again", "", "look whether the file has grown, was cut or is gone"),
    Key("question_mark", "keys", "", "show the keys"),
    Key("q", "quit", "quit", "quit"),
)
MOVES = (
    ("↑ ↓ j k", "move; PgUp, PgDn, space by pages; Home, End to the ends"),
    ("Enter → l", "go in; from a record to its fields, from these to bytes"),
    ("← h Backspace", "go back out"),
    ("Tab", "to the next pane; Shift+Tab back"),
    ("Esc", "stop a search, close a question, go back out"),
    ("mouse", "click to put the cursor there, twice to go in"),
)
_SHOWN = {"slash": "/", "question_mark": "?"}


def shown_key(key: Key) -> str:
    """A key as it is printed on a keyboard."""
    return _SHOWN.get(key.keys, key.keys)
