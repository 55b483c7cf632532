"""kseg's modules and their imports, and the rules for them in docs/developers/architecture.md."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from tests import golden

ROOT = golden.ROOT.parent

HOMES: dict[str, tuple[str, ...]] = {
    "construct": ("kseg.formats", "kseg.decode", "kseg.explain"),
    "crc32c": (),
    "fastavro": (),
    "lz4": (),
    "duckdb": ("kseg.query",),
    "pyarrow": ("kseg.arrow", "kseg.export", "kseg.query"),
    "pyspark": ("kseg.spark",),
    "rich": ("kseg.output", "kseg.browse.screen"),
    "snappy": (),
    "textual": ("kseg.browse.screen",),
    "zstandard": (),
}
"""Libraries that are slow to import or may not be installed, and the packages that may import them at module level."""
TEXT_MAKERS = {"kseg.output.columns", "kseg.output.rows", "kseg.output.table"}
"""Modules that only packages about text import."""
CHANGES = {
    *("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("setdefault", "update"),
}
"""Methods that change a collection."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def sources() -> dict[str, str]:
    """Return the source of every module of kseg, by its dotted name."""
    found = {}
    for path in sorted((ROOT / "kseg").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


def documented_floors() -> list[list[str]]:
    """Return the packages on each floor, from the top down, in the documented order.

    `export/run` is a package of its own.
    """
    text = (ROOT / "docs" / "developers" / "architecture.md").read_text(encoding="utf-8")
    block = re.search(r"^```layers\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    return [re.split(r"\s{2,}", line)[0].split() for line in block[1].splitlines()]


def compiled_modules() -> list[str]:
    """Return the dotted names of the modules that Cython compiles."""
    paths = sorted((ROOT / "kseg").rglob("*.pyx"))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]


class House:
    """Modules, by name and source, and the order of their packages: the floors, from the top down.

    Of compiled modules, only the names are known: others import them.
    """

    def __init__(self, modules: Mapping[str, str], floors: Iterable[str], compiled: Iterable[str] = ()) -> None:
        self.trees = {name: ast.parse(source) for name, source in modules.items()}
        self._names = {*self.trees, *compiled}
        self._rank = {package: number for number, packages in enumerate(floors) for package in packages}

    def floor(self, module: str) -> str | None:
        """Return the package of a module, as the floors name it, or None; kseg's own `__init__` is `kseg`."""
        parts = module.split(".")[1:] or ["kseg"]
        paths = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((path for path in paths if path in self._rank), None)

    def modules_on_no_floor(self) -> list[str]:
        """Return modules whose package has no place in the order."""
        return [module for module in self.trees if self.floor(module) is None]

    def empty_floors(self) -> list[str]:
        """Return floors without modules."""
        return sorted(self._rank.keys() - {self.floor(module) for module in self.trees})

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """The modules of kseg that each module imports, also within functions, including compiled ones."""
        return {
            module: {target for target in self._imported_modules(ast.walk(tree)) if target in self._names} - {module}
            for module, tree in self.trees.items()
        }

    def upward_imports(self) -> set[str]:
        """Return imports from another package that isn't on a lower floor.

        Each is `importing module -> imported module`.
        """
        return {
            f"{module} -> {target}"
            for module, targets in self.imports.items()
            for target in targets
            if not self._is_below(target, module)
        }

    def text_made_below(self, package: str) -> set[str]:
        """Return imports of modules about text, such as columns, by modules on floors below a package."""
        return {
            f"{module} -> {target}"
            for module, targets in self.imports.items()
            for target in targets & TEXT_MAKERS
            if self._rank[self.floor(module) or package] > self._rank[package] and self.floor(module) != "output"
        }

    def _is_below(self, module: str, other: str) -> bool:
        floor, floor_of_other = self.floor(module), self.floor(other)
        if floor is None or floor_of_other is None or floor == floor_of_other:
            return True
        return self._rank[floor] > self._rank[floor_of_other]

    def circle(self) -> list[str]:
        """Return modules that import each other in a circle; the first such circle, or nothing."""
        try:
            TopologicalSorter(self.imports).prepare()
        except CycleError as error:
            return list(error.args[1])
        return []

    def libraries_away_from_home(self) -> set[str]:
        """Return heavy libraries that are imported at module level outside of their packages, as `module: library`."""
        return {
            f"{module}: {library}"
            for module, tree in self.trees.items()
            for library in {target.split(".")[0] for target in self._imported_modules(_run_at_import(tree))}
            & HOMES.keys()
            if not any(module == home or module.startswith(f"{home}.") for home in HOMES[library])
        }

    def changing_values(self) -> set[str]:
        """Return state of the process: `module: name`.

        The state is collections at module level that functions change, objects there whose attributes or methods
        functions use for changes, and names that functions bind again.
        """
        changing = {module: set(_changing_classes(tree)) for module, tree in self.trees.items()}
        return {
            f"{module}: {name}"
            for module, tree in self.trees.items()
            for name in (_names_at_module_level(tree) & set(_changed_by_functions(tree)))
            | _made_of(changing[module] | set(_imported_names(tree, changing)), tree)
        }

    def _imported_modules(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        """Yield dotted names of imported modules; for a name out of a module of kseg, that module."""
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, "imports are absolute"
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    yield name if name in self._names else str(node.module)


def _run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run on import: nothing in functions, nothing for type checkers only."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function) and not _is_for_type_checkers(child):
            yield child
            yield from _run_at_import(child)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _names_at_module_level(tree: ast.Module) -> set[str]:
    targets = [
        target
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _changed_by_functions(tree: ast.Module) -> Iterator[str]:
    """Yield names that a function changes and doesn't bind itself: by item, by method, or with `global`."""
    for function in ast.walk(tree):
        if isinstance(function, Function):
            nodes = list(ast.walk(function))
            own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            own |= {node.arg for node in nodes if isinstance(node, ast.arg)}
            yield from (name for node in nodes for name in _changed_by(node) if name not in own)
            yield from (name for node in nodes if isinstance(node, ast.Global) for name in node.names)


def _changed_by(node: ast.AST) -> Iterator[str]:
    changed = _changed_place(node)
    if isinstance(changed, ast.Name):
        yield changed.id


def _changed_place(node: ast.AST) -> ast.expr | None:
    """Return the expression whose item or attribute is set, or whose method changes it."""
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        return node.func.value
    return None


def _changing_classes(tree: ast.Module) -> Iterator[str]:
    """Yield classes with a method that changes an existing object."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if getattr(each, "name", "") not in ("__init__", "__setstate__"))
            if any(_is_of_self(_changed_place(each)) for method in methods for each in ast.walk(method)):
                yield node.name


def _imported_names(tree: ast.Module, known: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield names of imported classes in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            own = known.get(str(node.module), set())
            yield from (alias.asname or alias.name for alias in node.names if alias.name in own)


def _is_of_self(node: ast.expr | None) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id == "self"


def _made_of(classes: set[str], tree: ast.Module) -> set[str]:
    """Return names at module level that are bound to an object of one of some classes."""
    return {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call)
        if isinstance(node.value.func, ast.Name) and node.value.func.id in classes
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
