"""Regular expressions of clients for topics, matched in time that doesn't explode.

Clients write them in RE2's language. Python's own matcher could be kept busy for hours by one of them, so they become a
small program of steps, all of whose states are followed at once.
"""

import string
from collections.abc import Iterable
from typing import NamedTuple

from kseg.serve.error_code import ErrorCode
from kseg.serve.groups.group_error import GroupError

LONGEST_PATTERN = 512
"""Characters."""
MOST_STEPS = 2000
_MOST_REPEATS = 1000
"""Source: RE2."""
_MOST_DEPTH = 50
_MOST_REMEMBERED = 5000
_ANY = frozenset(map(chr, range(32, 127)))
"""Topics' names have only some of these."""
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES = {"d": frozenset(string.digits), "w": _WORD, "s": frozenset(string.whitespace)}
_CLASSES |= {name.upper(): _ANY - characters for name, characters in _CLASSES.items()}
_NAMED = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "digit": frozenset(string.digits),
    "lower": frozenset(string.ascii_lowercase),
    "upper": frozenset(string.ascii_uppercase),
    "punct": frozenset(string.punctuation),
    "word": _WORD,
}


class _Step(NamedTuple):
    """What a state needs to go on: a character of some, a place in the text, or nothing; and where it goes then."""

    characters: frozenset[str] | None
    next: tuple[int, ...] = ()
    place: str = ""


class TopicPattern:
    """A pattern that matches whole names. Raises GroupError if it isn't one."""

    def __init__(self, text: str) -> None:
        """Takes the pattern as the client wrote it."""
        self.text = text
        self._steps = _Parser(text).steps()
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matching(self, names: Iterable[str]) -> frozenset[str]:
        """Those of some names that match."""
        return frozenset(name for name in names if self._matches(name))

    def _matches(self, name: str) -> bool:
        states = self._spread([0], is_start=True, is_end=not name)
        for position, character in enumerate(name, 1):
            states = self._after(states, character, is_end=position == len(name))
            if not states:
                return False
        return len(self._steps) in states

    def _after(self, states: frozenset[int], character: str, *, is_end: bool) -> frozenset[int]:
        key = (states, character + "$" * is_end)
        if key not in self._known:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            steps = (self._steps[state] for state in states if state < len(self._steps))
            going = [step.next[0] for step in steps if step.characters is not None and character in step.characters]
            self._known[key] = self._spread(going, is_start=False, is_end=is_end)
        return self._known[key]

    def _spread(self, states: list[int], *, is_start: bool, is_end: bool) -> frozenset[int]:
        """The states, and all that are reached from them without a character."""
        found: set[int] = set()
        left = list(states)
        while left:
            state = left.pop()
            if state in found:
                continue
            found.add(state)
            if state < len(self._steps):
                step = self._steps[state]
                is_there = {"": True, "^": is_start, "$": is_end}[step.place]
                if step.characters is None and is_there:
                    left += step.next
        return frozenset(found)


class _Parser:
    """Reads a pattern, and writes steps. An end that isn't known yet is the number of steps."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST_PATTERN:
            raise _invalid(f"longer than {LONGEST_PATTERN} characters")
        self._ignores_case = text.startswith("(?i)")
        self._text, self._at, self._depth = text[4:] if self._ignores_case else text, 0, 0

    def steps(self) -> list[_Step]:
        found = self._alternatives()
        if self._at < len(self._text):
            raise _invalid("a ) too many")
        return found

    def _peek(self, count: int = 1) -> str:
        return self._text[self._at : self._at + count]

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise _invalid("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _alternatives(self) -> list[_Step]:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise _invalid("too many ( within each other")
        found = self._sequence()
        while self._peek() == "|":
            self._take()
            found = _either(found, self._sequence())
        self._depth -= 1
        return found

    def _sequence(self) -> list[_Step]:
        found: list[_Step] = []
        while self._peek() not in ("", "|", ")"):
            found = _then(found, self._repeated(self._one()))
        return found

    def _repeated(self, one: list[_Step]) -> list[_Step]:
        while self._peek() and self._peek() in "*+?{":
            sign = self._take()
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign] if sign != "{" else self._counts()
            if self._peek() == "?":
                self._take()  # as few as possible: of no matter if the whole name has to match
            one = _times(one, least, most)
        return one

    def _counts(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at : max(end, self._at)].partition(",")
        if end < 0 or not (least.isascii() and least.isdigit()) or (most and not (most.isascii() and most.isdigit())):
            raise _invalid("{ without counts")
        self._at = end + 1
        low, high = int(least[:5]), int(most[:5]) if most else None if comma else int(least[:5])
        if low > _MOST_REPEATS or (high is not None and not low <= high <= _MOST_REPEATS):
            raise _invalid("{ with counts that can't be")
        return low, high

    def _one(self) -> list[_Step]:
        character = self._take()
        if character == "(":
            return self._group()
        if character == "[":
            return [_Step(self._class(), (1,))]
        if character in "^$":
            return [_Step(None, (1,), character)]
        if character == "\\" and self._peek() in ("A", "z"):
            return [_Step(None, (1,), "^" if self._take() == "A" else "$")]
        if character in "*+?{":
            raise _invalid(f"nothing before {character}")
        if character == "\\":
            return [_Step(self._escaped(), (1,))]
        return [_Step(_ANY if character == "." else self._cased({character}), (1,))]

    def _group(self) -> list[_Step]:
        if self._peek() == "?":
            start = self._text[self._at :]
            named = start.partition(">")[0]
            if start.startswith("?:"):
                self._at += 2
            elif start.startswith(("?P<", "?<")) and start[2:3].isalpha() | (start[3:4].isalpha()) and ">" in start:
                self._at += len(named) + 1
            else:
                raise _invalid("(? that isn't known")
        found = self._alternatives()
        if self._peek() != ")":
            raise _invalid("( without )")
        self._take()
        return found

    def _escaped(self) -> frozenset[str]:
        character = self._take()
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum():
            raise _invalid(f"\\{character} isn't known")
        return frozenset(character)

    def _class(self) -> frozenset[str]:
        is_without = self._peek() == "^"
        self._at += is_without
        found: set[str] = set()
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            found |= self._of_class()
        self._take()
        cased = self._cased(found)
        return _ANY - cased if is_without else cased

    def _of_class(self) -> frozenset[str]:
        character = self._take()
        if character == "[" and self._peek() == ":":
            name, colon, _ = self._text[self._at + 1 :].partition(":]")
            if not colon or name not in _NAMED:
                raise _invalid("[: that isn't known")
            self._at += len(name) + 3
            return _NAMED[name]
        if character == "\\":
            found = self._escaped()
            if len(found) > 1:
                return found
            (character,) = found
        if self._peek() != "-" or self._peek(2) == "-]":
            return frozenset(character)
        self._take()
        last = self._take()
        if last == "\\":
            (last, *more) = self._escaped()
            if more:
                raise _invalid("- before a class")
        if last < character:
            raise _invalid(f"{character}-{last} is empty")
        return frozenset(each for each in _ANY if character <= each <= last)

    def _cased(self, characters: Iterable[str]) -> frozenset[str]:
        found = frozenset(characters)
        if self._ignores_case:
            found = frozenset(other for each in found for other in (each.lower(), each.upper()))
        return found


def _invalid(why: str) -> GroupError:
    return GroupError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"not a regular expression that is known here: {why}")


def _moved(steps: list[_Step], by: int) -> list[_Step]:
    return [step._replace(next=tuple(each + by for each in step.next)) for step in steps]


def _then(first: list[_Step], second: list[_Step]) -> list[_Step]:
    if len(first) + len(second) > MOST_STEPS:
        raise _invalid("too long, or repeated too often")
    return [*first, *_moved(second, len(first))]


def _either(first: list[_Step], second: list[_Step]) -> list[_Step]:
    """One of both: a fork, the first, a jump over the second."""
    size = len(first) + 2
    jump = _Step(None, (size + len(second),))
    return _then([_Step(None, (1, size)), *_moved(first, 1), jump], second)


def _maybe(steps: list[_Step]) -> list[_Step]:
    return [_Step(None, (1, len(steps) + 1)), *_moved(steps, 1)]


def _again(steps: list[_Step]) -> list[_Step]:
    """None, one, or more: a fork, the steps, a jump back."""
    return [_Step(None, (1, len(steps) + 2)), *_moved(steps, 1), _Step(None, (0,))]


def _times(steps: list[_Step], least: int, most: int | None) -> list[_Step]:
    if len(steps) * max(least, most or 0) > MOST_STEPS:
        raise _invalid("too long, or repeated too often")
    found: list[_Step] = []
    for _ in range(least):
        found = _then(found, steps)
    if most is None:
        return _then(found, _again(steps))
    for _ in range(most - least):
        found = _then(found, _maybe(steps))
    return found
