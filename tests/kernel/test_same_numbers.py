"""The numbers of the compiled kernel are those of the contract."""

from enum import IntEnum

import pytest

from kseg.kernel import contract, fast
from kseg.kernel import contract as program


@pytest.mark.parametrize("numbers", [contract.Stop, contract.Problem, program.Op], ids=lambda numbers: numbers.__name__)
def test_the_compiled_kernel_numbers_as_the_contract_does(numbers: type[IntEnum]) -> None:
    compiled = getattr(fast, numbers.__name__)
    assert {member.name: int(member) for member in compiled} == {member.name: int(member) for member in numbers}
