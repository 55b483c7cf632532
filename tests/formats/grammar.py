"""The checks that every grammar gets."""

from typing import Any

import pytest
from construct import Construct, SizeofError


def check_grammar(grammar: Construct, value: dict[str, Any], content: bytes, *, size: int | None = None) -> None:
    """Parse gives the value, build gives the bytes, and the size is `size`, or not fixed."""
    assert grammar.parse(content) == value
    assert grammar.build(value) == content
    if size is None:
        with pytest.raises(SizeofError):
            grammar.sizeof()
    else:
        assert grammar.sizeof() == size == len(content)


def field_names(grammar: Construct) -> list[str]:
    """Names of the fields of a Struct without the hidden ones."""
    return [field.name for field in grammar.subcons if field.name and not field.name.startswith("_")]
