from collections.abc import Iterator
from importlib import import_module

import pytest
from construct import Construct, IfThenElse, Struct, Subconstruct

from tests.loops import for_each

GRAMMARS = {
    f"{module}.{name}": grammar
    for module in ("batch", "control", "indexes")
    for name, grammar in vars(import_module(f"kseg.formats.{module}")).items()
    if isinstance(grammar, Construct) and name.isupper() and not name.startswith("_")
}


def fields(grammar: Construct, path: str = "") -> Iterator[tuple[str, str]]:
    """Path and meaning of each visible field of a grammar and of those inside it."""
    if isinstance(grammar, Struct):
        for field in grammar.subcons:
            if field.name and not field.name.startswith("_"):
                yield f"{path}/{field.name}", field.docs
                yield from fields(field.subcon, f"{path}/{field.name}")
    elif isinstance(grammar, Subconstruct):
        yield from fields(grammar.subcon, path)
    elif isinstance(grammar, IfThenElse):
        yield from fields(grammar.thensubcon, path)
        yield from fields(grammar.elsesubcon, path)
    else:
        for field in getattr(grammar, "subcons", []):
            yield from fields(field, path)


@for_each("name", [name for name, grammar in GRAMMARS.items() if any(fields(grammar))])
def test_every_field_has_its_meaning(name: str) -> None:
    assert [path for path, meaning in fields(GRAMMARS[name]) if not meaning] == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("control.VOTERS", "/voters/endpoints/port"),
        ("control.VOTERS", "/voters/tagged_fields/tag"),
        ("control.LEADER_CHANGE", "/granting_voters/voter_directory_id"),
        ("batch.RECORD_BATCH", "/header/attributes/codec"),
        ("batch.RECORD_BATCH", "/records/headers/value"),
        ("indexes.PRODUCER_SNAPSHOT", "/entries/epoch"),
    ],
)
def test_fields_inside_others_are_looked_at(name: str, path: str) -> None:
    assert path in {path for path, _meaning in fields(GRAMMARS[name])}
