"""Patterns in Java's syntax, translated for topic names.

Topic names are ASCII, so each class of characters becomes a list. Source: java.util.regex.Pattern.
"""

import re
import string
import unicodedata
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kseg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

Characters = frozenset[str]

_ALL: Characters = frozenset(map(chr, range(128)))
_LETTERS = frozenset(string.ascii_letters)
_SHORT = {
    "d": frozenset(string.digits),
    "w": _LETTERS | frozenset(string.digits + "_"),
    "s": frozenset(" \t\n\v\f\r"),
    "h": frozenset(" \t"),
    "v": frozenset("\n\v\f\r"),
}
"""Classes by the letter of their escape; the capital stands for all others."""
_PROPERTIES = {
    "Lower": frozenset(string.ascii_lowercase),
    "Upper": frozenset(string.ascii_uppercase),
    "ASCII": _ALL,
    "Alpha": _LETTERS,
    "Digit": _SHORT["d"],
    "Alnum": _LETTERS | _SHORT["d"],
    "Punct": frozenset(string.punctuation),
    "Graph": _LETTERS | _SHORT["d"] | frozenset(string.punctuation),
    "Print": _LETTERS | _SHORT["d"] | frozenset(string.punctuation + " "),
    "Blank": _SHORT["h"],
    "Cntrl": frozenset(each for each in _ALL if unicodedata.category(each) == "Cc"),
    "XDigit": frozenset(string.hexdigits),
    "Space": _SHORT["s"],
}
_SYNONYMS = {
    "javaLowerCase": "Lower",
    "javaUpperCase": "Upper",
    "javaLetter": "Alpha",
    "javaDigit": "Digit",
    "javaLetterOrDigit": "Alnum",
    "IsAlphabetic": "Alpha",
    "IsLetter": "Alpha",
    "IsLatin": "Alpha",
    "IsDigit": "Digit",
    "IsLowercase": "Lower",
    "IsUppercase": "Upper",
    "IsPunctuation": "P",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_ANCHORS = {"A": r"\A", "G": r"\A", "Z": r"\Z", "z": r"\Z", "b": r"\b", "B": r"\B"}
"""Positions by the letter of their escape. No name has a line's end, and the first match begins at the start."""
_NUMBERED = re.compile(r"0([0-3]?[0-7]{1,2})|x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})")
_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)|\\.", re.DOTALL)
_FLAGS = re.compile(r"\?([idmsuxU]*)(?:-([idmsuxU]*))?([:)])")
_NAME = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_GROUPS = ("?:", "?=", "?!", "?>", "?<=", "?<!")


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return a pattern for `search`.

    Raises UsageError if it is invalid, or has a construct without equivalent.
    """
    try:
        return re.compile(_Translation(_QUOTED.sub(_unquote, text)).expression(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"subscribePattern {text!r} isn't a valid pattern: {error}") from error


def _unquote(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else re.sub("([^a-zA-Z0-9])", r"\\\1", found[1])


def _class_of(members: Characters) -> str:
    return f"[{''.join(map(re.escape, sorted(members)))}]" if members else "(?!)"


class _Frame(NamedTuple):
    """An open group: whether cases are alike outside of it, and the groups that flags have opened in it."""

    folds: bool
    flags: list[str]


class _Translation:
    """A pass over a pattern without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._folds = False
        self._count = 0
        self._frames = [_Frame(folds=False, flags=[])]

    def expression(self) -> str:
        """Return the pattern in Python's syntax."""
        parts: list[str] = []
        special: dict[str, Callable[[], str]] = {
            "\\": self._expression_of_escape,
            "[": lambda: _class_of(self._members()),
            "(": self._group,
            ")": self._close,
            "|": lambda: ")" * len(self._frames[-1].flags) + "|" + "".join(self._frames[-1].flags),
            "{": lambda: "{" + self._take(re.compile(r"\d+(?:,\d*)?\}"), "{"),
        }
        while self._at < len(self._text):
            character = self._next()
            if character in special:
                parts.append(special[character]())
            else:
                parts.append(character if character in "^$.*+?" else re.escape(character))
        if len(self._frames) > 1:
            self._refuse("(")
        return "".join(parts) + ")" * len(self._frames[0].flags)

    def _next(self) -> str:
        if self._at == len(self._text):
            self._refuse(self._text[-1:])
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, pattern: re.Pattern[str], construct: str) -> str:
        """Return what comes next. Refuses the construct if it is something else."""
        found = pattern.match(self._text, self._at)
        if found is None:
            self._refuse(construct)
        self._at = found.end()
        return found[0]

    def _refuse(self, construct: str) -> NoReturn:
        raise UsageError(
            f"subscribePattern: `{construct}` before position {self._at} is invalid or not supported; leave it out"
        )

    def _group(self) -> str:
        if (found := _FLAGS.match(self._text, self._at)) is not None:
            self._at = found.end()
            return self._flags(found[1], found[2] or "", is_group=found[3] == ":")
        named = _NAME.match(self._text, self._at)
        opening = next((each for each in _GROUPS if self._text.startswith(each, self._at)), "")
        if named is not None:
            self._at, opening = named.end(), f"?P<{named[1]}>"
        elif not opening and self._text.startswith("?", self._at):
            self._refuse(f"({self._text[self._at : self._at + 2]}")
        else:
            self._at += len(opening)
        self._count += named is not None or not opening
        self._frames.append(_Frame(self._folds, []))
        return f"({opening}"

    def _flags(self, added: str, removed: str, *, is_group: bool) -> str:
        """Open the group of some flags. Without `:` they hold to the end of the group around them."""
        if "x" in added:
            self._refuse("the flag x")
        if is_group:
            self._frames.append(_Frame(self._folds, []))
        self._folds = (self._folds or "i" in added) and "i" not in removed
        opening = "(?i:" if self._folds else "(?-i:"
        if not is_group:
            self._frames[-1].flags.append(opening)
        return opening

    def _close(self) -> str:
        if len(self._frames) == 1:
            self._refuse(")")
        frame = self._frames.pop()
        self._folds = frame.folds
        return ")" * (len(frame.flags) + 1)

    def _expression_of_escape(self) -> str:
        """Return the translation of an escape outside of classes."""
        letter = self._next()
        if letter in _ANCHORS and not self._text.startswith("{", self._at):
            return _ANCHORS[letter]
        if letter == "k":
            return f"(?P={self._take(re.compile('<[a-zA-Z][a-zA-Z0-9]*>'), chr(92) + 'k')[1:-1]})"
        if letter in "123456789":
            return self._back_reference(int(letter))
        self._at -= 1
        found = self._escape()
        return _class_of(found) if isinstance(found, frozenset) else re.escape(found)

    def _back_reference(self, number: int) -> str:
        """Return the reference to a group; further digits belong to it if there is such a group."""
        while self._text[self._at : self._at + 1].isdecimal():
            longer = number * 10 + int(self._text[self._at])
            if longer > self._count:
                break
            number, self._at = longer, self._at + 1
        return f"(?:\\{number})"

    def _escape(self) -> str | Characters:
        """Return the character or the class of an escape."""
        if (found := _NUMBERED.match(self._text, self._at)) is not None:
            self._at = found.end()
            octal, *hexadecimal = found.groups()
            return chr(int(octal, 8) if octal else min(int(next(filter(None, hexadecimal)), 16), 0x10FFFF))
        letter = self._next()
        if letter in "pP":
            members = self._property(letter)
            return _ALL - members if letter == "P" else members
        if letter.lower() in _SHORT:
            members = _SHORT[letter.lower()]
            return members if letter.islower() else _ALL - members
        if letter == "c":
            return chr(ord(self._next()) ^ 64)
        if letter not in _CONTROLS and letter.isascii() and letter.isalnum():
            self._refuse(f"\\{letter}")
        return _CONTROLS.get(letter, letter)

    def _property(self, letter: str) -> Characters:
        name = self._take(re.compile(r"\{[^}]*\}|[A-Z]"), f"\\{letter}").strip("{}")
        known = _SYNONYMS.get(name, name)
        if known in _PROPERTIES:
            members = _PROPERTIES[known]
        else:
            category = re.sub("^(?:Is|gc=|general_category=)", "", known)
            members = frozenset(each for each in _ALL if unicodedata.category(each).startswith(category))
            if not re.fullmatch("[CLMNPSZ][a-z]?", category):
                self._refuse(f"\\{letter}{{{name}}}")
        return self._fold(members)

    def _fold(self, members: Characters) -> Characters:
        """Return the characters, and those of the other case if cases are alike."""
        return frozenset(each for one in members for each in (one.lower(), one.upper())) if self._folds else members

    def _members(self) -> Characters:
        """Return the characters of the class that has begun: the common ones of its operands, or all others."""
        is_negated = self._text.startswith("^", self._at)
        self._at += is_negated
        operands: list[set[str]] = [set()]
        is_empty = True
        while (character := self._next()) != "]" or is_empty:
            if character == "&" and self._text.startswith("&", self._at):
                self._at += 1
                operands.append(set())
            else:
                operands[-1] |= self._members() if character == "[" else self._fold(self._item(character))
                is_empty = False
        common = frozenset.intersection(*(frozenset(each) for each in operands if each or len(operands) == 1))
        return _ALL - common if is_negated else common

    def _item(self, character: str) -> Characters:
        """Return a character, class or range within a class."""
        first = self._escape() if character == "\\" else character
        following = self._text[self._at : self._at + 2]
        if isinstance(first, frozenset):
            return first
        if following[:1] != "-" or following[1:] in ("", "]", "["):
            return frozenset(first) & _ALL
        self._at += 1
        last = self._next()
        end = self._escape() if last == "\\" else last
        if isinstance(end, frozenset) or end < first:
            self._refuse(f"the range {first}-{last}")
        return frozenset(map(chr, range(ord(first), min(ord(end), 127) + 1)))
