"""Templates of other WorkflowTemplates, brought into one manifest: theirs are named `<WorkflowTemplate>/<template>`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.app.runner import manifest
from seatrial.app.runner.manifest import Dag, DagTask, Manifest, Template
from seatrial.errors import InvalidInput


def linked(document: dict[str, Any], libraries: Mapping[str, dict[str, Any]]) -> Manifest:
    """The manifest in `document`, with every WorkflowTemplate that it calls, however deep.

    Args:
        document: What runs.
        libraries: Name → rendered WorkflowTemplate, for `templateRef`.

    Raises:
        InvalidInput: A document holds what is not known here, or one that is called is not there.
    """
    read = manifest.read(document)
    templates = [_linked(template, "") for template in read.spec.templates]
    known: dict[str, Manifest] = {}
    open_ends = sorted(_called(read))
    while open_ends:
        name = open_ends.pop()
        if name in known:
            continue
        if name not in libraries:
            raise InvalidInput(f"{read.metadata.name} calls the WorkflowTemplate {name}; there are {sorted(libraries)}")
        known[name] = manifest.read(libraries[name])
        templates += [_linked(template, name) for template in known[name].spec.templates]
        open_ends += sorted(_called(known[name]))
    spec = read.spec.model_copy(update={"templates": tuple(templates)})
    return read.model_copy(update={"spec": spec})


def parts(name: str) -> tuple[str, str]:
    """The WorkflowTemplate and the template in a linked name; the first is empty for the manifest's own."""
    library, _, template = name.rpartition("/")
    return library, template


def _called(read: Manifest) -> set[str]:
    return {task.template_ref.name for task in _tasks(read) if task.template_ref is not None}


def _tasks(read: Manifest) -> Iterator[DagTask]:
    for template in read.spec.templates:
        yield from template.dag.tasks if template.dag is not None else ()


def _linked(template: Template, library: str) -> Template:
    changes: dict[str, Any] = {"name": _name(library, template.name)}
    if template.dag is not None:
        changes["dag"] = Dag(tasks=tuple(_task(task, library) for task in template.dag.tasks))
    return template.model_copy(update=changes)


def _task(task: DagTask, library: str) -> DagTask:
    called = task.template_ref
    name = _name(library, task.template) if called is None else _name(called.name, called.template)
    return task.model_copy(update={"template": name, "template_ref": None})


def _name(library: str, template: str) -> str:
    return f"{library}/{template}" if library else template
