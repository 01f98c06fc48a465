"""`withParam`: one task for each entry of a list."""

from __future__ import annotations

import pytest
from fakes_runner import Simulation, dag, document, pod, task

from seatrial.app.runner import fanout
from seatrial.errors import InvalidInput


def names(text: str) -> list[str]:
    return [item.name for item in fanout.items("t", text)]


def test_a_task_is_named_by_number_and_value_without_parentheses() -> None:
    assert names('["carts", "clicks (new)", 7, 7.50, true]') == [
        "t(0:carts)",
        "t(1:clicks new)",
        "t(2:7)",
        "t(3:7.50)",
        "t(4:true)",
    ]


def test_an_object_gives_its_keys_and_itself_as_json() -> None:
    (item,) = fanout.items("t", '[{"version": 3, "model": "cärts", "on": false}]')
    assert item.name == "t(0:model:cärts,on:false,version:3)"
    assert item.value("item.model") == "cärts"
    assert item.value("item.on") == "false"
    assert item.value("item") == '{"model":"cärts","on":false,"version":3}'


def test_a_key_that_an_entry_lacks_is_named() -> None:
    (item,) = fanout.items("t", '[{"model": "carts"}]')
    with pytest.raises(InvalidInput, match=r"item\.version"):
        item.value("item.version")


@pytest.mark.parametrize("text", ["", "carts", '"carts"', '{"a": 1}', "[", '[["a"]]', "[null]", '[{"a": {"b": 1}}]'])
def test_anything_but_a_list_of_plain_entries_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="withParam"):
        fanout.items("t", text)


def fanned(after: str = "each.Succeeded", *, items: str = '["x", "y"]', when: str | None = None) -> Simulation:
    each = {**task("each", when=when, template="b", v="{{item}}"), "withParam": items}
    given = pod("b", inputs={"parameters": [{"name": "v"}]})
    run = Simulation(document(dag("main", each, task("c", after)), given, pod("c")))
    run.advance()
    return run


def test_what_waits_for_a_fan_out_waits_for_all_of_it() -> None:
    run = fanned()
    run.end("each(0:x)")
    assert run.phase("each") == "Running"
    assert "c" not in run.phases()
    run.end("each(1:y)")
    assert run.phase("each") == "Succeeded"
    assert run.up() == ["c"]
    assert run.node("each(1:y)").children == (run.node("c").id,)


def test_one_member_that_fails_fails_the_fan_out_after_the_others_have_ended() -> None:
    run = fanned()
    run.end("each(0:x)", 1)
    assert run.phase("each") == "Running"
    run.end("each(1:y)")
    assert run.phases() == {
        "w-1": "Failed",
        "each": "Failed",
        "each(0:x)": "Failed",
        "each(1:y)": "Succeeded",
        "c": "Omitted",
    }


@pytest.mark.parametrize(
    ("after", "codes", "starts"),
    [
        ("each.AnySucceeded", (0, 1), True),
        ("each.AnySucceeded", (1, 1), False),
        ("each.AllFailed", (1, 1), True),
        ("each.AllFailed", (0, 1), False),
    ],
)
def test_members_can_be_asked_for_together(after: str, codes: tuple[int, int], *, starts: bool) -> None:
    run = fanned(after)
    run.end("each(0:x)", codes[0])
    run.end("each(1:y)", codes[1])
    assert (run.up() == ["c"]) is starts


def test_each_member_asks_its_own_gate() -> None:
    run = fanned(when="'{{item}}' == 'x'")
    assert run.phase("each(1:y)") == "Skipped"
    assert run.up() == ["each(0:x)"]


def test_an_empty_list_is_a_skipped_task() -> None:
    run = fanned(items="[]")
    assert run.phases() == {"w-1": "Succeeded", "each": "Skipped", "c": "Omitted"}
    assert run.node("each").message == "Skipped, empty params"


def test_what_is_no_list_is_an_error() -> None:
    run = fanned("each.Errored", items="carts")
    assert run.phase("each") == "Error"
    assert run.up() == ["c"]
