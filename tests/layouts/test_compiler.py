"""Templates: what their literals, holes, groups and escapes print, and which are refused."""

from typing import TYPE_CHECKING

import pytest

from kseg.errors import UsageError
from kseg.kernel.contract import Op
from kseg.layouts.template import FIELDS, PATH, compile_endings, compile_template, fill
from tests.kernel.made import BatchHeader, Message, Record, batch
from tests.kernel.runs import program_of, render, scan_rows
from tests.loops import for_each

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel

HEADER = BatchHeader(1000, base_timestamp=5, max_timestamp=9, producer_id=7)
RECORDS = {
    "key and value": Record(key=b"k", value=b"v"),
    "no key": Record(value=b"v"),
    "no value": Record(key=b"k"),
    "nothing": Record(),
    "empty": Record(key=b"", value=b""),
}


def print_record(kernel: "Kernel", template: str, record: str = "key and value") -> str:
    """Return the text that a template prints for a record of a v2 batch."""
    content = batch(HEADER, [RECORDS[record]])
    return render(kernel, program_of(None, template), content, scan_rows(kernel, content)).text.decode()


# --- literals and escapes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("", ""),
        ("plain", "plain"),
        ("a line\n", "a line\n"),
        ("привет 🚀", "привет 🚀"),
        (r"\{offset\}", "{offset}"),
        (r"{offset}\}", "1000}"),
        ("back\\slash", "back\\slash"),
        ("end\\", "end\\"),
        ("100%s %", "100%s %"),
    ],
)
def test_literals_stand_as_they_are(kernel: "Kernel", template: str, text: str) -> None:
    assert print_record(kernel, template) == text


# --- holes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{offset}", "1000"),
        ("{offset}{offset}", "10001000"),
        ("o: {offset} k: {key} v: {value}.", "o: 1000 k: k v: v."),
        ("{isValid} {recordIsValid}", "true true"),
        ("{timestampType} {timestamp}", "CreateTime 5"),
        ("{compression} {compression:capital} {compression:scala}", "none NONE NoCompressionCodec"),
    ],
)
def test_hole_shows_its_field(kernel: "Kernel", template: str, text: str) -> None:
    assert print_record(kernel, template) == text


@for_each("name", FIELDS)
def test_every_field_can_be_shown(kernel: "Kernel", name: str) -> None:
    content = batch(HEADER, [RECORDS["key and value"]]) + Message(value=b"v", magic=0).encode()
    rendered = render(kernel, program_of(None, f"{{{name}}}\n"), content, scan_rows(kernel, content))
    assert rendered.text.count(b"\n") == 2


def test_words_of_different_tables_are_kept_apart(kernel: "Kernel") -> None:
    template = "{isTransactional} {timestampType} {isControl} {compression:capital} {timestampType}"
    assert print_record(kernel, template) == "false CreateTime false NONE CreateTime"


# --- groups ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{key?[{key}]}", {"key and value": "[k]", "no key": "", "no value": "[k]", "nothing": "", "empty": "[]"}),
        ("{key![none]}", {"key and value": "", "no key": "[none]", "no value": "", "nothing": "[none]", "empty": ""}),
        ("{value?{value}}{value!null}", {"key and value": "v", "no value": "null", "empty": ""}),
        ("{keySize?<{keySize}>}", {"key and value": "<1>", "no key": "", "empty": "<0>"}),
        ("{sequence?there}{sequence!not}", {"nothing": "there"}),
        ("{isControl?control}{isControl!data}", {"nothing": "data"}),
        ("{producerId?of {producerId}}", {"nothing": "of 7"}),
    ],
)
def test_group_is_shown_where_its_field_is_there(kernel: "Kernel", template: str, shown: dict[str, str]) -> None:
    assert {record: print_record(kernel, template, record) for record in shown} == shown


@pytest.mark.parametrize(
    ("record", "text"),
    [("key and value", "(kv)."), ("no key", "."), ("no value", "(k-)."), ("nothing", "."), ("empty", "().")],
)
def test_groups_nest(kernel: "Kernel", record: str, text: str) -> None:
    assert print_record(kernel, "{key?({key}{value?{value}}{value!-})}.", record) == text


def test_empty_group_shows_nothing(kernel: "Kernel") -> None:
    assert print_record(kernel, "a{key?}b") == "ab"


def test_literal_behind_a_group_is_shown_whether_the_group_is_or_not(kernel: "Kernel") -> None:
    template = "{key?with}{key!without} end"
    assert [print_record(kernel, template, record) for record in ("key and value", "no key")] == [
        "with end",
        "without end",
    ]


def test_literals_behind_nested_groups_are_shown_at_their_level(kernel: "Kernel") -> None:
    template = "{key?a{value?b}c}d"
    assert [print_record(kernel, template, record) for record in RECORDS] == ["abcd", "d", "acd", "d", "abcd"]


@pytest.mark.parametrize("text", ["one literal", "with \\{ an escape \\} in it", "with \\ a backslash"])
def test_neighbouring_literals_are_one_operation(text: str) -> None:
    assert compile_template(text).ops[::3] == (Op.LITERAL,)


@pytest.mark.parametrize(
    "start", ["", "start ", "{magic} {isValid}", "{compression:capital} {key?key {key}}", "{key?key}"]
)
def test_lines_with_the_same_start_are_the_lines_compiled_one_by_one(start: str) -> None:
    ends = ["", " end", "{isControl} {compression:capital}", "{value!no value}\n"]
    assert compile_endings(start, ends) == tuple(compile_template(start + end) for end in ends)


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{colour}", "no field colour; specify some of baseOffset, "),
        ("{key:colour}", "no field key:colour"),
        ("{colour?x}", "no field colour"),
        ("{", "isn't a field"),
        ("{}", "isn't a field"),
        ("{ key }", "isn't a field"),
        ("{key", "isn't a field"),
        ("a } b", "a closing brace without an opening one"),
        ("{key}}", "a closing brace without an opening one"),
        ("{key?open", "isn't closed"),
        ("{key?{value?open}", "isn't closed"),
        ("{headerKeys?x}", "always has a value"),
    ],
)
def test_template_that_means_nothing_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(UsageError) as refusal:
        compile_template(template)
    assert reason in refusal.value.message
    assert repr(template) in refusal.value.message


# --- what differs from file to file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["", "a.log", "{offset}\\{key?", "ä" * 300])
def test_path_is_filled_in_wherever_it_stands(kernel: "Kernel", path: str) -> None:
    text = f"{PATH}|{{offset}} {PATH}{{key? key{PATH}}} end {{offset}}"
    template = fill(compile_template(text), PATH, path)
    content = batch(HEADER, [RECORDS["key and value"]])
    program = program_of(None, "")._replace(record=(template,) * 3)
    shown = render(kernel, program, content, scan_rows(kernel, content)).text.decode()
    assert shown == f"{path}|1000 {path} key{path} end 1000"
