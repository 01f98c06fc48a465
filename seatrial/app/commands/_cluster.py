"""A cluster that a kubeconfig leads to: its seatrial, reached with the person's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seatrial.adapters import clock, gateway, installation, s3
from seatrial.adapters.argo import ArgoWorkflows
from seatrial.adapters.pods import PodLogs
from seatrial.app.commands import _runs
from seatrial.app.commands._place import Place, Say
from seatrial.app.commands._ports import Ports, in_order, warn
from seatrial.app.commands._unseen import Unseen
from seatrial.errors import InvalidInput, StepError, Unavailable
from seatrial.ledger import Book
from seatrial.ports import Manifest, Store
from seatrial.route import Router
from steps.settle_release import history, sweep


@dataclass(frozen=True, kw_only=True)
class Remote(Ports):
    """A cluster, reached."""

    workflows: ArgoWorkflows
    template: Manifest
    """The WorkflowTemplate `release`, as the cluster has it."""

    def releases(self, model: str) -> list[dict[str, Any]]:
        """Those that run and those that ended: by their Workflows, and by the store where it is seen."""
        told = {history.uid(run): _runs.facts(run) for run in self._runs_of(self.workflows.ended(), model)}
        with suppress(StepError):  # the ledger, looked for in the same store, has said so
            told |= {str(one.get("release_id")): one for one in super().releases(model)}
        living = [_runs.facts(run) for run in self._runs_of(self.workflows.living(), model)]
        return [*in_order(told.values()), *in_order(living)]

    @staticmethod
    def _runs_of(runs: list[Manifest], model: str) -> list[Manifest]:
        return [run for run in runs if _runs.is_release_of(run, model)]


class OnCluster(Place):
    """The seatrial of a cluster."""

    def __init__(self, context: str, namespace: str) -> None:
        """Find it.

        Raises:
            InvalidInput: There is no such context, or no seatrial in that namespace.
            Unavailable: The API does not answer.
        """
        self.name = f"cluster {context}"
        self._context, self._namespace = context, namespace
        self._found = installation.find(context, namespace)

    @property
    def choices(self) -> list[str]:
        """Those that its form offers."""
        return _runs.choices(self.ports.template)

    @property
    def models(self) -> list[str]:
        """Those that its form offers, and those that have a route."""
        with suppress(StepError):
            return sorted({*self.choices, *self._found.cluster.routes.models()})
        return self.choices

    @cached_property
    def ports(self) -> Remote:
        """Everything that the person may reach."""
        found, time = self._found, clock.from_environment()
        template = found.cluster.templates.get(_runs.TEMPLATE)
        if template is None:
            raise InvalidInput(f"{self.name} has no WorkflowTemplate {_runs.TEMPLATE} in namespace {self._namespace}")
        store = _store(found.store)
        book = Book(store, time)
        front = _front(found.gateway)
        return Remote(
            namespace=found.namespace,
            store=store,
            services=found.cluster.services,
            router=Router(found.cluster.routes, time, namespace=found.namespace, book=book, say=warn),
            predictions=front if isinstance(front, Unseen) else front.predictions,
            traffic=front if isinstance(front, Unseen) else front.traffic,
            clock=time,
            book=book,
            workflows=found.cluster.workflows,
            template=template,
            options=f" --context {self._context}",
            releasing="submit",
        )

    @property
    def pods(self) -> PodLogs:
        """What the steps' pods print."""
        return self._found.pods

    def reached(self) -> Remote:
        """Everything that the person may reach."""
        return self.ports

    def tidy(self, models: list[str], say: Say) -> None:
        """Nothing: the CronWorkflow `settle` does it, and who only looks may have no right to."""

    def settle(self, model: str, say: Say) -> None:
        """What the CronWorkflow `settle` does, for one model, now."""
        here = sweep.Ports(
            routes=self._found.cluster.routes,
            services=self._found.cluster.services,
            runs=self.ports.workflows,
            router=self.ports.router,
            store=self.ports.store,
            predictions=self.ports.predictions,
            clock=self.ports.clock,
        )
        try:
            sweep.model(model, here, say)
        except Unavailable as error:  # traffic comes first, and needs the route only
            say(f"only the route was put right: {error}")

    def facts(self) -> dict[str, Any]:
        """Its processes are the cluster's own business."""
        return {"parts": []}


def _store(settings: Mapping[str, str] | StepError) -> Store:
    if isinstance(settings, StepError):
        return Unseen(settings)
    try:
        return s3.from_environment(settings)
    except StepError as error:
        return Unseen(error)


def _front(settings: Mapping[str, str] | StepError) -> gateway.Gateway | Unseen:
    if isinstance(settings, StepError):
        return Unseen(settings)
    try:
        return gateway.from_environment(settings)
    except StepError as error:
        return Unseen(error)
