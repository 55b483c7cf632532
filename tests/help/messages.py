"""The messages that kseg can print, collected from its source: docs/help/messages.md has an entry for each.

A message is the text of an exception, or the argument of a function that prints notes. Its words are traced back from
there: through variables, parameters, fields, tables, and the functions that return them. Variable parts are `…`. Words
that can fill such a part are a message of their own.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tests.help.source import (
    Function,
    Module,
    Source,
    bound,
    has_decorator,
    holds_text,
    last_name,
    parameters,
    returned_expressions,
)

VARIES = "…"
OWN = "kseg: "
"""Beginning of kseg's lines on stderr."""

SPEAKERS = ("talk", "say", "_say", "tell", "note", "warn", "fail", "add_problem", "Note", "_pass_over")
"""Functions that print their arguments as notes, or pass them on."""
FOREIGN_ERRORS = {"UsageError", "BadParameter", "ClickException", "OSError", "ValueError"} | {
    "StreamError",
    "RangeError",
    "CheckError",
    "IntegerError",
}
"""Exceptions of click, of Python and of construct whose texts kseg passes on."""
UNSEEN = {("say", "screen"), ("note", "blocks"), ("notes", "blocks"), ("note", "apis")}
UNSEEN |= {("ValueError", "kernel"), ("ValueError", "twin")}
"""Exceptions that aren't messages in a package.

They are browse's own line on the screen, the contract of the kernel, the text of a report's page, and the words
of a line about a request to a server.
"""
FIELDS = {"detail", "reason", "failure", "problem", "why", "refusal", "warning", "hint", "says", "note", "notes"}
"""Fields of values with words for the user, such as a damage's detail."""
PARAMETERS = (
    FIELDS
    | {"message", "text", "texts", "line", "lines", "wrong", "said", "note", "notes", "sentence"}
    | {
        "reasons",
        "problems",
        "messages",
        "doubt",
    }
)
"""Parameters and properties with such words; others have values."""
VALUES = {"quote", "escaped_text", "one_line", "plural", "human_size", "json_line"}
"""Functions that format a value."""
SAME_TEXT = {"value_in", "str", "list", "tuple", "sorted", "next", "iter", "chain", "dict", "set", "cast"}
"""Functions whose result has the words of their arguments."""
CHANGED_TEXT = {"format", "strip", "rstrip", "lstrip", "replace", "removeprefix", "removesuffix", "decode", "encode"}
CHANGED_TEXT |= {"get", "items", "values"}
"""Methods whose result has the words of their owner."""
_MOST_FUNCTIONS = 6
"""Most functions that may share a name: with more, the called function is unknown."""


class Message(NamedTuple):
    """A message, and file and line of its words."""

    text: str
    place: str


class Sink(NamedTuple):
    """A parameter that users read: of functions with a name, at this place (every place if None) or by this keyword."""

    called: str
    position: int | None
    keyword: str


def collect(source: Source) -> list[Message]:
    """Return all messages of a source."""
    collector = _Collector(source)
    for name in SPEAKERS:
        collector.add_sink(Sink(name, None, ""))
    for name in source.errors | FOREIGN_ERRORS:
        if not any(_constructor(node) for _, node in source.classes.get(name, ())):
            collector.add_sink(Sink(name, 0, "message"))
    for module in source.modules:
        for argument in _indirect_texts(module):
            collector.add(argument, module, least=3)
    for name, classes in source.classes.items():
        for _, node in classes:
            for sink in _fields(node, name):
                collector.add_sink(sink)
    collector.follow()
    return [Message(text, place) for text, place in sorted(collector.found.items())]


def has_words(text: str, least: int = 2) -> bool:
    """Return True if a text has words besides its variable parts."""
    return sum(sum(map(str.isalpha, word)) >= 2 for word in text.replace(VARIES, " ").split()) >= least


def message_text(text: str) -> str:
    """Return a message in the form of the page: on one line, without the place before it."""
    text = re.sub(r"\{\w*\}", VARIES, " ".join(text.split()))
    text = re.sub(f"{VARIES}+", VARIES, text)
    return re.sub(rf"^(kseg: |{VARIES}: |{VARIES} at position {VARIES}: )+", "", text).strip(" ;,:")


class _Collector:
    """Traces the words of messages through a source."""

    def __init__(self, source: Source) -> None:
        self.found: dict[str, str] = {}
        self._source = source
        self._sinks: set[Sink] = set()
        self._waiting: list[Sink] = []
        self._texts_of: dict[ast.expr, list[str]] = {}

    def add_sink(self, sink: Sink) -> None:
        """Add a parameter, once."""
        if sink not in self._sinks:
            self._sinks.add(sink)
            self._waiting.append(sink)

    def follow(self) -> None:
        """Add the arguments of all parameters, including parameters found on the way."""
        while self._waiting:
            sink = self._waiting.pop()
            for module, call in self._source.calls.get(sink.called, ()):
                package = module.path.parent.name
                if not UNSEEN.intersection({(sink.called, package), (sink.keyword, package)}):
                    for argument in _arguments_for(call, sink):
                        self.add(argument, module)

    def add(self, node: ast.expr, module: Module, least: int = 2) -> None:
        """Add the messages that an expression can be, if they have enough words."""
        for text in self._texts(node, module):
            if has_words(text, least):
                self.found.setdefault(message_text(text), module.place(node))

    def _texts(self, node: ast.expr, module: Module) -> list[str]:
        """Return all texts that an expression can be, each once."""
        if node not in self._texts_of:
            self._texts_of[node] = []  # recursion adds nothing
            self._texts_of[node] = list(dict.fromkeys(self._read(node, module)))
        return self._texts_of[node]

    def _texts_of_all(self, nodes: Iterable[tuple[Module, ast.expr]]) -> list[str]:
        return [text for module, node in nodes for text in self._texts(node, module)] or [VARIES]

    def _read(self, node: ast.expr, module: Module) -> Iterable[str]:
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Constant(value=None):
                return []
            case ast.JoinedStr(values=values):
                return ["".join(self._part(value, module) for value in values)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [self._part(left, module) + self._part(right, module)]
            case ast.Name():
                return self._name_text(node, module)
            case ast.Attribute():
                return self._attribute(node, module)
            case ast.Call():
                return self._call_text(node, module)
        return self._texts_of_all((module, each) for each in _alternatives(node))

    def _part(self, node: ast.expr, module: Module) -> str:
        """Return a text's part: its words, or `…` and messages of their own."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.FormattedValue) and node.conversion == -1:
            if (words := _counted_words(node.value)) is not None:
                return words
            self.add(node.value, module, least=3)
        elif not isinstance(node, ast.FormattedValue):
            self.add(node, module, least=3)
        return VARIES

    def _name_text(self, node: ast.Name, module: Module) -> Iterable[str]:
        for function in module.functions_around(node):
            values = list(bound(node.id, function))
            if values:
                return self._texts_of_all((module, value) for value in values)
            if not isinstance(function, ast.Lambda) and node.id in parameters(function):
                return self._parameter(node.id, function, module)
        known = self._source.constants.get(node.id, [])
        here = [each for each in known if each[0] is module]
        return self._texts_of_all(here or (known if node.id in module.imported else []))

    def _parameter(self, name: str, function: Function, module: Module) -> list[str]:
        """Return the words of all calls for a parameter: they become messages of their own."""
        if name not in PARAMETERS or not holds_text(parameters(function)[name]):
            return [VARIES]
        owner = module.parents[function]
        is_constructor = isinstance(owner, ast.ClassDef) and function.name == "__init__"
        called = owner.name if isinstance(owner, ast.ClassDef) and is_constructor else function.name
        if function.args.vararg is not None and function.args.vararg.arg == name:
            self.add_sink(Sink(called, None, ""))
            return []
        places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        has_self = isinstance(owner, ast.ClassDef) and not has_decorator(function, "staticmethod")
        self.add_sink(Sink(called, places.index(name) - has_self if name in places else len(places), name))
        return []

    def _attribute(self, node: ast.Attribute, module: Module) -> list[str]:
        """Return a property's words, or those of a table in another module."""
        if node.attr.isupper():
            return self._texts_of_all(self._source.constants.get(node.attr, []))
        known = [each for each in self._source.functions.get(node.attr, ()) if has_decorator(each[1], *_PROPERTIES)]
        if node.attr not in PARAMETERS and len(known) != 1:
            return [VARIES]
        return self._results(known)

    def _call_text(self, call: ast.Call, module: Module) -> Iterable[str]:
        name = last_name(call.func)
        if isinstance(call.func, ast.Attribute) and name in CHANGED_TEXT:
            others = call.args[1:] if name == "get" else []
            return self._texts_of_all((module, each) for each in (call.func.value, *others))
        if name == "join" or name in SAME_TEXT:
            return self._texts_of_all((module, each) for each in call.args)
        if name in VALUES:
            return [_counted_words(call) or VARIES]
        known = self._source.functions.get(name, ())
        return self._results(each for each in known if each[0] is module or not name.startswith("_"))

    def _results(self, functions: Iterable[tuple[Module, Function]]) -> list[str]:
        of_text = [(module, each) for module, each in functions if holds_text(each.returns)]
        if len(of_text) > _MOST_FUNCTIONS:
            return [VARIES]
        return self._texts_of_all((module, value) for module, each in of_text for value in returned_expressions(each))


def _counted_words(node: ast.expr) -> str | None:
    """Return the result of `plural` for more than one, if its words are literals."""
    match node:
        case ast.Call(func=ast.Name(id="plural"), args=[_, ast.Constant(value=noun)]):
            return f"{VARIES} {noun}s"
        case ast.Call(func=ast.Name(id="plural"), args=[_, _, ast.Constant(value=plural)]):
            return f"{VARIES} {plural}"
    return None


_PROPERTIES = ("property", "cached_property")


def _alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the expressions that another expression chooses from or contains."""
    match node:
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BoolOp(values=values) | ast.Dict(values=values):
            return values
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return elements
        case ast.GeneratorExp(elt=value) | ast.ListComp(elt=value) | ast.SetComp(elt=value):
            return [value]
        case (
            ast.Starred(value=value) | ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Subscript(value=value)
        ):
            return [value]
        case ast.BinOp(left=left, op=ast.Mod()):
            return [left]
    return []


def _constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def _indirect_texts(module: Module) -> Iterator[ast.expr]:
    """Yield lines that are created before they are printed, and arguments of exceptions in indirect calls."""
    for node in module.nodes:
        match node:
            case ast.Raise(exc=ast.Call(func=func, args=[ast.JoinedStr() as text, *_])) if not _is_error(func):
                yield text
            case ast.Raise(exc=ast.Call(func=func, args=[ast.Constant(value=str()) as text, *_])) if not _is_error(
                func
            ):
                yield text
            case (
                ast.Call(
                    func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"), args=[text, *_]
                )
                | ast.Assign(targets=[ast.Attribute(value=ast.Name(id="attempt"), attr="problem")], value=text)
            ):
                yield text
            case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if start.startswith(OWN):
                yield node
            case ast.Constant(value=str(start)) if start.startswith(OWN) and not _is_part(node, module):
                yield node
            case ast.FunctionDef():
                kinds = {
                    name for name, kind in parameters(node).items() if kind and ast.unparse(kind).startswith("type[")
                }
                for call in ast.walk(node):
                    if isinstance(call, ast.Call) and last_name(call.func) in kinds and call.args:
                        yield call.args[0]


def _is_part(node: ast.AST, module: Module) -> bool:
    return isinstance(module.parents[node], ast.JoinedStr)


def _is_error(func: ast.expr) -> bool:
    return last_name(func).endswith("Error")


def _fields(node: ast.ClassDef, name: str) -> Iterator[Sink]:
    """Yield the fields of a class of values that have words."""
    declared = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    for index, target in enumerate(each for each in declared if isinstance(each, ast.Name)):
        if target.id in FIELDS:
            yield Sink(name, index, target.id)


def _arguments_for(call: ast.Call, sink: Sink) -> Iterator[ast.expr]:
    """Yield a call's arguments for a parameter."""
    if sink.position is None:
        yield from call.args
    else:
        yield from call.args[sink.position : sink.position + 1]
        yield from (each.value for each in call.keywords if each.arg == sink.keyword)
