"""kseg's own named tuples: values like those of `typing`."""

import copy
import pickle
from typing import NamedTuple as OfTyping
from typing import Protocol

import pytest

from kseg.named_tuple import NamedTuple


class Lean(NamedTuple):
    """A place."""

    topic: str
    partition: int
    offset: "int | None" = None
    size: int = 0

    @property
    def name(self) -> str:
        """The directory's name."""
        return f"{self.topic}-{self.partition}"


class Usual(OfTyping):
    """A place."""

    topic: str
    partition: int
    offset: "int | None" = None
    size: int = 0

    @property
    def name(self) -> str:
        """The directory's name."""
        return f"{self.topic}-{self.partition}"


class Make(Protocol):
    def __call__(self, *values: object, **named: object) -> object: ...


ARGUMENTS: list[tuple[tuple[object, ...], dict[str, object]]] = [
    (("orders", 1, 5, 7), {}),
    (("orders", 1), {}),
    (("orders", 1, 5), {}),
    (("orders",), {"partition": 1, "size": 7}),
    ((), {"size": 7, "partition": 1, "topic": "orders"}),
    (("orders", 1), {"offset": 5}),
]
WRONG: list[tuple[tuple[object, ...], dict[str, object]]] = [
    ((), {}),
    (("orders",), {}),
    (("orders",), {"size": 7}),
    (("orders", 1, 5, 7, 9), {}),
    (("orders", 1), {"topic": "orders"}),
    (("orders", 1, 5, 7), {"offset": 5}),
    (("orders", 1), {"epoch": 3}),
]


@pytest.mark.parametrize(("values", "named"), ARGUMENTS)
def test_a_value_has_the_same_fields(values: tuple[object, ...], named: dict[str, object]) -> None:
    lean: Make = Lean
    usual: Make = Usual
    made = lean(*values, **named)
    assert isinstance(made, Lean)
    assert made == usual(*values, **named)
    assert (made.topic, made.partition, made.offset, made.size) == made


@pytest.mark.parametrize(("values", "named"), WRONG)
@pytest.mark.parametrize("make", [Lean, Usual])
def test_wrong_arguments_are_refused(make: Make, values: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        make(*values, **named)


def test_a_value_does_what_values_of_typing_do() -> None:
    lean, usual = Lean("orders", 1, 5), Usual("orders", 1, 5)
    assert repr(lean) == repr(usual).replace("Usual", "Lean")
    assert lean._replace(offset=6, size=1) == usual._replace(offset=6, size=1)
    assert lean._asdict() == usual._asdict()
    assert Lean._make(usual) == usual
    assert (lean.name, Lean.__doc__) == (usual.name, Usual.__doc__)
    assert (Lean._fields, Lean._field_defaults, Lean.__match_args__) == (
        Usual._fields,
        Usual._field_defaults,
        Usual.__match_args__,
    )
    assert not hasattr(lean, "__dict__")
    match lean:
        case Lean("orders", partition, size=size):
            assert (partition, size) == (1, 0)


def test_copies_are_equal_and_of_the_same_class() -> None:
    lean = Lean("orders", 1, 5)
    copies = [copy.copy(lean), copy.deepcopy(lean), pickle.loads(pickle.dumps(lean))]
    assert [(type(each), each) for each in copies] == [(Lean, lean)] * 3


@pytest.mark.parametrize("kind", [Lean, Usual])
def test_an_unknown_field_is_not_replaced(kind: type[Lean] | type[Usual]) -> None:
    with pytest.raises((TypeError, ValueError)):
        kind("orders", 1)._replace(epoch=3)  # type: ignore[call-arg, unused-ignore]


@pytest.mark.parametrize("kind", [Lean, Usual])
def test_a_field_is_not_assigned(kind: type[Lean] | type[Usual]) -> None:
    with pytest.raises(AttributeError):
        setattr(kind("orders", 1), "size", 3)  # noqa: B010  mypy knows that it can't
