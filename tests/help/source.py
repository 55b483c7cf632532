"""kseg's source as trees: its functions, classes, constants and calls by name, and the bindings of names."""

import ast
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path

from tests import golden

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A module: its tree, each node's parent, and the names that it imports."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path
        self.name = name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes: list[ast.AST] = [self.tree]
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in self.nodes:  # the list grows in the loop
            children = list(ast.iter_child_nodes(node))
            self.nodes += children
            self.parents |= dict.fromkeys(children, node)
        imports = [node for node in self.nodes if isinstance(node, ast.ImportFrom)]
        self.imported = {each.asname or each.name for node in imports for each in node.names}

    def functions_around(self, node: ast.AST) -> Iterator[Function | ast.Lambda]:
        """Yield the functions around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, Function | ast.Lambda):
                yield node

    def place(self, node: ast.expr) -> str:
        """Return file and line."""
        return f"{self.name}:{node.lineno}"


class Source:
    """All modules below some directories, and their definitions by name."""

    def __init__(self, root: Path, *directories: str) -> None:
        paths = [path for each in directories for path in sorted((root / each).rglob("*.py"))]
        self.modules = [Module(path, str(path.relative_to(root))) for path in paths]
        self.functions: dict[str, list[tuple[Module, Function]]] = {}
        self.classes: dict[str, list[tuple[Module, ast.ClassDef]]] = {}
        self.constants: dict[str, list[tuple[Module, ast.expr]]] = {}
        self.calls: dict[str, list[tuple[Module, ast.Call]]] = {}
        for module in self.modules:
            for node in module.nodes:
                self._add(node, module)

    def _add(self, node: ast.AST, module: Module) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.functions.setdefault(node.name, []).append((module, node))
            case ast.ClassDef():
                self.classes.setdefault(node.name, []).append((module, node))
            case ast.Call():
                self.calls.setdefault(last_name(node.func), []).append((module, node))
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if isinstance(module.parents[node], ast.Module | ast.ClassDef):
                self.constants.setdefault(name, []).append((module, value))

    @cached_property
    def errors(self) -> frozenset[str]:
        """The names of all classes of exceptions and warnings."""
        found = {"Exception", "UserWarning"}
        while more := {name for name in self.classes.keys() - found if found.intersection(self._bases(name))}:
            found |= more
        return frozenset(found)

    def _bases(self, name: str) -> set[str]:
        return {last_name(base) for _, node in self.classes[name] for base in node.bases}


@cache
def kseg_source() -> Source:
    """Return kseg and its data source for Spark."""
    return Source(golden.ROOT.parent, "kseg", "pyspark_kseg")


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name: `write` of `sys.stderr.write`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.Call(func=value):
            return last_name(value)
    return ""


def parameters(function: Function) -> dict[str, ast.expr | None]:
    """Return a function's parameters with their annotations."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return {each.arg: each.annotation for each in every if each is not None}


def holds_text(annotation: ast.expr | None) -> bool:
    """Return True if a type contains text."""
    return annotation is None or any(isinstance(node, ast.Name) and node.id == "str" for node in ast.walk(annotation))


def has_decorator(function: Function, *names: str) -> bool:
    """Return True if one of these decorates a function."""
    return any(last_name(each) in names for each in function.decorator_list)


def returned_expressions(function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a function returns or yields."""
    for node in ast.iter_child_nodes(function):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                continue
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                yield value
            case ast.YieldFrom(value=value):
                yield value
        yield from returned_expressions(node)


def bound(name: str, function: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions that a local name is bound to in a function, and those added to its list."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[target], value=value) if _binds(target, name):
                yield value
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _binds(target, name):
                yield value
            case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                if _binds(target, name):
                    yield value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                if _binds(target, name):
                    yield value
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="append" | "extend"), args=[value]):
                if owner == name:
                    yield value


def _binds(target: ast.expr, name: str) -> bool:
    is_place = isinstance(target, ast.Subscript | ast.Attribute)
    return not is_place and any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(target))
