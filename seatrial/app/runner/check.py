"""What must hold before anything starts: every name leads somewhere, so that no run stops half-way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from seatrial.app.runner import expression, link, retries, scope, variables
from seatrial.app.runner.commands import Commands
from seatrial.app.runner.manifest import Arguments, Container, DagTask, Manifest, Template
from seatrial.errors import InvalidInput

GLOBALS = frozenset({"workflow.name", "workflow.uid", "workflow.namespace", "workflow.creationTimestamp"})
ON_EXIT = frozenset({"workflow.status", "workflow.failures"})


def check(manifest: Manifest, *, entrypoint: str, commands: Commands, environment: Iterable[str]) -> None:
    """Refuse a manifest that could not run to its end.

    Args:
        manifest: What is to run.
        entrypoint: Where it starts.
        commands: Image → program.
        environment: The ConfigMaps and Secrets that there are.

    Raises:
        InvalidInput: Every fault, each by its path.
    """
    faults = list(_Check(manifest, commands, frozenset(environment)).faults(entrypoint))
    if faults:
        raise InvalidInput(f"the workflow template {manifest.metadata.name} cannot run here: {'; '.join(faults)}")


class _Check:
    def __init__(self, manifest: Manifest, commands: Commands, environment: frozenset[str]) -> None:
        self.templates = {template.name: template for template in manifest.spec.templates}
        self.index = {template.name: number for number, template in enumerate(manifest.spec.templates)}
        self.workflow = GLOBALS | {f"workflow.parameters.{p.name}" for p in manifest.spec.arguments.parameters}
        self.manifest, self.commands, self.environment = manifest, commands, environment

    def faults(self, entrypoint: str) -> Iterator[str]:
        leave = self.manifest.spec.hooks.exit
        if entrypoint not in self.templates:
            yield f"spec.entrypoint: no template {entrypoint}; there are {sorted(self.templates)}"
        if leave is not None:
            yield from self._arguments(leave.template, leave.arguments, self.workflow | ON_EXIT, "spec.hooks.exit")
        for template in self.manifest.spec.templates:
            library, name = link.parts(template.name)
            place = f"spec.templates[{self.index[template.name]}]"
            yield from self._template(template, f"{library}: template {name}" if library else place)

    def _template(self, template: Template, path: str) -> Iterator[str]:
        known = self.workflow | {f"inputs.parameters.{p.name}" for p in template.inputs.parameters}
        if template.lock is not None:
            yield from _unknown(template.lock, known, f"{path}.synchronization.mutexes[0].name")
        if template.container is not None:
            known |= {"retries"} if template.retry_strategy is not None else frozenset()
            yield from self._container(template, template.container, known, path)
        if template.dag is not None:
            if template.name in self._within(template.name):
                yield f"{path}: it calls itself"
            yield from self._dag(template, template.dag.tasks, known, f"{path}.dag")

    def _within(self, name: str) -> set[str]:
        """The templates that a template calls, however deep."""
        found: set[str] = set()
        open_ends = [name]
        while open_ends:
            template = self.templates.get(open_ends.pop())
            tasks = template.dag.tasks if template is not None and template.dag is not None else ()
            new = {task.template for task in tasks} - found
            found |= new
            open_ends += sorted(new)
        return found

    def _container(self, template: Template, container: Container, known: frozenset[str], path: str) -> Iterator[str]:
        if container.image not in self.commands:
            yield f"{path}.container.image: {container.image} is not known; known are {sorted(self.commands)}"
        for number, text in enumerate(container.args):
            yield from _unknown(text, known, f"{path}.container.args[{number}]")
        for number, variable in enumerate(container.env):
            yield from _unknown(variable.value, known, f"{path}.container.env[{number}].value")
        for number, source in enumerate(container.env_from):
            if not source.source.optional and source.source.name not in self.environment:
                yield f"{path}.container.envFrom[{number}]: there is no {source.source.name} here"
        volumes = {volume.name for volume in template.volumes}
        for number, mount in enumerate(container.volume_mounts):
            if mount.name not in volumes:
                yield f"{path}.container.volumeMounts[{number}]: no volume {mount.name}"
        if template.retry_strategy is not None:
            yield from _not_understood(
                template.retry_strategy.expression, f"{path}.retryStrategy.expression", retries.NAMES
            )

    def _dag(self, template: Template, tasks: tuple[DagTask, ...], known: frozenset[str], path: str) -> Iterator[str]:
        faults = [fault for number, task in enumerate(tasks) for fault in _expressions(task, f"{path}.tasks[{number}]")]
        if faults:
            yield from faults
            return
        named = {task.name: task for task in tasks}
        if len(named) != len(tasks):
            yield f"{path}.tasks: two tasks have one name"
            return
        strangers = {name for task in tasks for name in scope.dependencies(task)} - named.keys()
        if strangers:
            yield f"{path}.tasks: they wait for {sorted(strangers)}, which are not there"
            return
        scope.in_order(named)  # refuses a circle
        for number, task in enumerate(tasks):
            yield from self._task(named, task, known, f"{path}.tasks[{number}]")
        given, place = known | self._given(named, named), f"{path.removesuffix('.dag')}.outputs.parameters"
        for number, output in enumerate(template.outputs.parameters):
            if output.value_from.default is None:
                yield f"{place}[{number}]: without a default Argo hangs where its task was left out"
            yield from _unknown(output.value_from.parameter or "", given, f"{place}[{number}]")

    def _task(self, named: Mapping[str, DagTask], task: DagTask, known: frozenset[str], path: str) -> Iterator[str]:
        states = {name.partition(".")[2] for name in expression.names(task.depends)} if task.depends else set()
        if states - {"", *scope.STATES}:
            yield f"{path}.depends: {sorted(states - {'', *scope.STATES})} is not known"
        given = known | self._given(named, _before(named, task))
        if task.with_param is not None:
            yield from _unknown(task.with_param, given, f"{path}.withParam")
            given |= _items(task)
        yield from self._arguments(task.template, task.arguments, given, path)
        if task.when is not None:
            yield from _unknown(task.when, given, f"{path}.when")

    def _arguments(self, name: str, arguments: Arguments, given: frozenset[str], path: str) -> Iterator[str]:
        template = self.templates.get(name)
        if template is None:
            yield f"{path}.template: no template {name}"
            return
        inputs = template.inputs
        for kind, wanted, required, came in (
            (
                "parameters",
                inputs.parameters,
                {p.name for p in inputs.parameters if p.value is None},
                arguments.parameters,
            ),
            ("artifacts", inputs.artifacts, {a.name for a in inputs.artifacts}, arguments.artifacts),
        ):
            names = {argument.name for argument in came}
            if missing := required - names:
                yield f"{path}.arguments.{kind}: {name} needs {sorted(missing)}"
            if strange := names - {one.name for one in wanted}:
                yield f"{path}.arguments.{kind}: {name} does not take {sorted(strange)}"
        for argument in arguments.parameters:
            yield from _unknown(argument.value, given, f"{path}.arguments.parameters.{argument.name}")
        for artifact in arguments.artifacts:
            yield from _unknown(artifact.from_, given, f"{path}.arguments.artifacts.{artifact.name}")

    def _given(self, named: Mapping[str, DagTask], tasks: Iterable[str]) -> frozenset[str]:
        """The outputs of `tasks`, as references; those of a fan-out are not known here."""
        found = set()
        for name in tasks:
            template = self.templates.get(named[name].template)
            if template is not None and named[name].with_param is None:
                found |= {f"tasks.{name}.outputs.parameters.{p.name}" for p in template.outputs.parameters}
                found |= {f"tasks.{name}.outputs.artifacts.{a.name}" for a in template.outputs.artifacts}
        return frozenset(found)


def _items(task: DagTask) -> frozenset[str]:
    """The references to its item that a task holds: which keys there are shows when it runs."""
    texts = [task.when or "", *(given.value for given in task.arguments.parameters)]
    try:
        names = {name for text in texts for name in variables.references(text)}
    except InvalidInput:
        return frozenset()  # told where the text itself is checked
    return frozenset(name for name in names if name.partition(".")[0] == "item")


def _before(named: Mapping[str, DagTask], task: DagTask) -> set[str]:
    """The tasks that have ended when `task` starts."""
    found: set[str] = set()
    open_ends = set(scope.dependencies(task))
    while open_ends:
        name = open_ends.pop()
        found.add(name)
        open_ends |= scope.dependencies(named[name]) - found
    return found


def _unknown(text: str, known: frozenset[str], path: str) -> Iterator[str]:
    try:
        names = variables.references(text)
    except InvalidInput as error:
        yield f"{path}: {error}"
        return
    for name in names:
        if name not in known:
            yield f"{path}: {{{{{name}}}}} is not known there"


def _expressions(task: DagTask, path: str) -> Iterator[str]:
    """Faults of `depends` and `when`; `when` is read by a library that knows neither bare texts nor a retry's words."""
    if task.depends is not None:
        yield from _not_understood(task.depends, f"{path}.depends")
    if task.when is not None:
        faults = list(_not_understood(task.when, f"{path}.when", frozenset()))
        yield from faults
        if not faults and (foreign := expression.of_retries(task.when)):
            yield f"{path}.when: {sorted(foreign)} belongs to a retry's expression, Argo's `when` does not know it"


def _not_understood(text: str, path: str, known: frozenset[str] | None = None) -> Iterator[str]:
    """Why an expression cannot be decided; `known`: all that it may ask for, None for anything."""
    try:
        strange = expression.names(text) - (known if known is not None else expression.names(text))
    except InvalidInput as error:
        yield f"{path}: {error}"
        return
    if strange:
        yield f"{path}: {sorted(strange)} is not known there; a text must stand in quotes"
