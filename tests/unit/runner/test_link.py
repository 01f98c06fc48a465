"""`templateRef`: templates of another WorkflowTemplate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes_runner import Stage, dag, document, pod, task

from seatrial.app.runner import link
from seatrial.errors import InvalidInput


def calling(library: str, template: str) -> dict[str, Any]:
    called = task("call")
    del called["template"]
    return {**called, "templateRef": {"name": library, "template": template}}


def library(name: str, *templates: dict[str, Any]) -> dict[str, Any]:
    made = document(*templates)
    made["metadata"]["name"] = name
    return made


def test_names_are_looked_up_where_they_stand() -> None:
    main = document(dag("main", calling("lib", "two"), task("a", "call.Succeeded")), pod("a"))
    read = link.linked(main, {"lib": library("lib", dag("two", task("a")), pod("a"))})
    tasks = {t.name: [task.template for task in t.dag.tasks] for t in read.spec.templates if t.dag is not None}
    assert tasks == {"main": ["lib/two", "a"], "lib/two": ["lib/a"]}


def test_a_library_may_call_another() -> None:
    main = document(dag("main", calling("one", "main")))
    others = {"one": library("one", dag("main", calling("two", "a"))), "two": library("two", pod("a"))}
    assert [t.name for t in link.linked(main, others).spec.templates] == ["main", "one/main", "two/a"]


def test_one_that_is_not_called_is_not_read() -> None:
    assert len(link.linked(document(pod("a")), {"lib": {"kind": "nonsense"}}).spec.templates) == 1


def test_a_missing_library_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"calls the WorkflowTemplate lib; there are \['other'\]"):
        link.linked(document(dag("main", calling("lib", "a"))), {"other": library("other", pod("a"))})


def test_a_template_that_its_library_lacks_is_refused_before_anything_starts(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    main = document(dag("main", calling("lib", "b"), task("a")), pod("a"))
    with pytest.raises(InvalidInput, match="no template lib/b"):
        stage.run(main, libraries={"lib": library("lib", pod("a"))})


def test_the_record_names_the_library_where_it_is_called(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"a": [{}]})
    main = document(dag("main", calling("lib", "two"), task("a")), pod("a"))
    finished = stage.run(main, libraries={"lib": library("lib", dag("two", task("b", template="a")), pod("a"))})
    nodes = {node["displayName"]: node for node in finished["status"]["nodes"].values()}
    assert nodes["call"]["templateRef"] == {"name": "lib", "template": "two"}
    assert "templateName" not in nodes["call"]
    assert nodes["b"]["templateName"] == "a"
