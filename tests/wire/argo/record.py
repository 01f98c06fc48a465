"""Runs the cases on the real controller of the cluster that KUBECONFIG names, and writes down what it made of them.

    python -m tests.wire.argo.record [CASE …]            record
    python -m tests.wire.argo.record --check [CASE …]    run again and compare with what is recorded

Needs the image `localhost/busybox:1` on the node and, for artifacts, an S3 API, by default the test cluster's:
WIRE_S3_ENDPOINT (host:port), WIRE_S3_BUCKET, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY. Everything happens in a
namespace of its own, made and removed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kubernetes import client, config

from . import compare, facts
from .case import FOLDER, Case, Submission, all_cases

NAMESPACE: Final = "seatrial-wire"
ARGO: Final = {"group": "argoproj.io", "version": "v1alpha1"}
LIMIT_S: Final = 420.0
"""Seconds that all cases together may take."""
AT_ONCE: Final = 7
"""Workflows that run at the same time: more only wait for the processors."""
SUFFIX: Final = "-b2c3d"
"""Of every Workflow's name, which is then no word that a message could hold."""
OVER: Final = frozenset({"Succeeded", "Failed", "Error"})
ATTEMPTS: Final = 3
"""How often a case is run before it counts as changed: some of what Argo does is a race."""
QUIET_S: Final = 25.0
"""Seconds without a change after which a Workflow that hangs is believed to."""


CREDENTIALS: Final = FOLDER.parents[2] / ".seatrial" / "cluster" / "secrets" / "store.json"
"""The test cluster's own."""


def _keys() -> dict[str, str]:
    """The S3 API's credentials: those of the environment, else the test cluster's."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    given = {name: os.environ[name] for name in names if name in os.environ}
    return given or dict(json.loads(CREDENTIALS.read_text(encoding="utf-8")))


class Cluster:
    """The few calls that a recording needs, all in one namespace."""

    def __init__(self, kubeconfig: str | None) -> None:
        config.load_kube_config(kubeconfig)
        self.core, self.rbac, self.objects = (
            client.CoreV1Api(),
            client.RbacAuthorizationV1Api(),
            client.CustomObjectsApi(),
        )

    def create(self, plural: str, manifest: dict[str, Any]) -> str:
        """Create one of Argo's objects; what the API server says against it, empty when nothing."""
        try:
            self.objects.create_namespaced_custom_object(
                **ARGO, namespace=NAMESPACE, plural=plural, body=manifest, field_validation="Strict"
            )
        except client.ApiException as error:
            return str(json.loads(error.body)["message"])
        return ""

    def workflows(self) -> dict[str, dict[str, Any]]:
        """The case's name → Workflow."""
        found = self.objects.list_namespaced_custom_object(**ARGO, namespace=NAMESPACE, plural="workflows")
        return {item["metadata"]["name"].removesuffix(SUFFIX): item for item in found["items"]}

    def shut_down(self, name: str, how: str) -> None:
        """Stop or terminate a Workflow, as `argo stop` and `argo terminate` do."""
        self.objects.patch_namespaced_custom_object(
            **ARGO, namespace=NAMESPACE, plural="workflows", name=name + SUFFIX, body={"spec": {"shutdown": how}}
        )

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """The namespace with what the executor and the artifacts need; removed again."""
        self._remove()
        self.core.create_namespace({"metadata": {"name": NAMESPACE}})
        try:
            self._grant()
            self._store()
            yield
        finally:
            self._remove()

    def _grant(self) -> None:
        rules = [{"apiGroups": [ARGO["group"]], "resources": ["workflowtaskresults"], "verbs": ["create", "patch"]}]
        self.rbac.create_namespaced_role(NAMESPACE, {"metadata": {"name": "executor"}, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "executor"}
        subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}]
        binding = {"metadata": {"name": "executor"}, "roleRef": role, "subjects": subjects}
        self.rbac.create_namespaced_role_binding(NAMESPACE, binding)

    def _store(self) -> None:
        environment = os.environ.get
        self.core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": "wire-s3"}, "stringData": _keys()})
        place = {
            "endpoint": environment("WIRE_S3_ENDPOINT", "10.199.0.1:8333"),
            "bucket": environment("WIRE_S3_BUCKET", "seatrial"),
            "insecure": True,
            "accessKeySecret": {"name": "wire-s3", "key": "AWS_ACCESS_KEY_ID"},
            "secretKeySecret": {"name": "wire-s3", "key": "AWS_SECRET_ACCESS_KEY"},
            "keyFormat": "wire/{{workflow.uid}}/{{pod.name}}",
        }
        annotations = {"workflows.argoproj.io/default-artifact-repository": "wire"}
        metadata = {"name": "artifact-repositories", "annotations": annotations}
        self.core.create_namespaced_config_map(
            NAMESPACE, {"metadata": metadata, "data": {"wire": json.dumps({"s3": place})}}
        )

    def _remove(self) -> None:
        with contextlib.suppress(client.ApiException):
            self.core.delete_namespace(NAMESPACE)
        while True:
            try:
                self.core.read_namespace(NAMESPACE)
            except client.ApiException as error:
                if error.status == 404:
                    return
                raise
            time.sleep(0.5)


class Recorder:
    """All cases at once, a few Workflows at a time."""

    def __init__(self, cluster: Cluster, cases: Sequence[Case]) -> None:
        self.cluster, self.cases = cluster, cases
        self.waited: dict[str, dict[str, str]] = {s.name: {} for case in cases for s in case.submissions}
        self.rejected: dict[str, str] = {}
        self.shut: set[str] = set()
        self.seen: dict[str, dict[str, Any]] = {}
        ordered = sorted(cases, key=lambda case: not case.has_deadline)
        self.open = [submission for case in ordered for submission in case.submissions]
        self.hurried = {submission.name for case in cases if case.has_deadline for submission in case.submissions}
        self.changes: dict[str, tuple[dict[str, str], float]] = {}

    def run(self, limit_s: float) -> dict[str, facts.Facts]:
        """Case → its facts; one that is not over after `limit_s` seconds is left out."""
        for case in self.cases:
            for template in case.templates.values():
                if fault := self.cluster.create("workflowtemplates", template):
                    self.rejected |= {s.name: fault for s in case.submissions}
        self.open = [submission for submission in self.open if submission.name not in self.rejected]
        ends = time.monotonic() + limit_s
        while (any(map(self._awaits, self.open)) or self._running()) and time.monotonic() < ends:
            self.seen = self.cluster.workflows()
            self._look()
            self._submit()
            time.sleep(0.3)
        late = {*self._running(), *(submission.name for submission in self.open)}
        over = [case for case in self.cases if not late & {submission.name for submission in case.submissions}]
        return {case.name: self._facts(case) for case in over}

    def _facts(self, case: Case) -> facts.Facts:
        for submission in case.submissions:
            if submission.name in self.rejected:
                return {"rejected": self.rejected[submission.name]}
        finished = {s.name: self.seen[s.name] for s in case.submissions}
        return facts.of_case(finished, {name: self.waited[name] for name in finished})

    def _running(self) -> list[str]:
        now = time.monotonic()
        open_ends = [n for n, workflow in self.seen.items() if workflow.get("status", {}).get("phase") not in OVER]
        return [name for name in open_ends if not (self._hangs(name) and now - self._changed(name) > QUIET_S)]

    def _hangs(self, name: str) -> bool:
        return any(s.name == name and s.annotation("hangs") for case in self.cases for s in case.submissions)

    def _changed(self, name: str) -> float:
        """When a node of it last changed its phase."""
        now, phases = time.monotonic(), facts.phases(self.seen[name])
        if self.changes.get(name, (None, now))[0] != phases:
            self.changes[name] = (phases, now)
        return self.changes[name][1]

    def _look(self) -> None:
        for case in self.cases:
            for submission in case.submissions:
                workflow = self.seen.get(submission.name)
                if workflow is None:
                    continue
                self.waited[submission.name] |= facts.waits(workflow)
                if submission.name not in self.shut and facts.is_due(submission, workflow):
                    self.shut.add(submission.name)
                    self.cluster.shut_down(submission.name, submission.annotation("shutdown"))

    def _submit(self) -> None:
        running = self._running()
        places = AT_ONCE - len(running)
        for submission in list(self.open):
            first = submission.name in self.hurried or not self.hurried & set(running)
            if first and self._may(submission, places):
                places -= 1
                self.open.remove(submission)
                metadata = {**submission.manifest["metadata"], "name": submission.name + SUFFIX, "namespace": NAMESPACE}
                made = {**submission.manifest, "metadata": metadata}
                if fault := self.cluster.create("workflows", made):
                    self.rejected[submission.name] = fault
                else:
                    self.seen[submission.name] = made

    def _awaits(self, submission: Submission) -> bool:
        """Whether it can still be submitted; not when what it was to run beside is over and was not seen to run."""
        beside = submission.annotation("submit-once-running").partition(".")[0]
        return self.seen.get(beside, {}).get("status", {}).get("phase") not in OVER

    def _may(self, submission: Submission, places: int) -> bool:
        """One that another waits for does not wait for a place."""
        once = submission.annotation("submit-once-running")
        if not once:
            return places > 0
        return any(facts.runs(self.seen[n], n, once) for n in self.seen if once.startswith(f"{n}."))


def record(cases: Sequence[Case], *, kubeconfig: str | None = None, limit_s: float = LIMIT_S) -> dict[str, facts.Facts]:
    """Case → what the real controller made of it; without those that were not over in time."""
    cluster = Cluster(kubeconfig)
    with cluster.prepared():
        return Recorder(cluster, cases).run(limit_s)


def changed(
    cases: Sequence[Case], *, kubeconfig: str | None = None, limit_s: float = LIMIT_S, attempts: int = ATTEMPTS
) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Case → what is otherwise than recorded, each time it was run; one that once was as recorded is fine."""
    found = record(cases, kubeconfig=kubeconfig, limit_s=limit_s)
    late = {"": ("over in time", "not over in time")}
    differing = {
        case.name: compare.differences(known(case), found[case.name]) if case.name in found else late for case in cases
    }
    again = [case for case in cases if differing[case.name]]
    if again and attempts > 1:
        return changed(again, kubeconfig=kubeconfig, limit_s=limit_s, attempts=attempts - 1)
    return {case.name: differing[case.name] for case in again}


def known(case: Case) -> facts.Facts:
    """What is recorded."""
    recorded: facts.Facts = json.loads(case.recording.read_text(encoding="utf-8"))
    return recorded


def write(found: dict[str, facts.Facts], cases: Sequence[Case]) -> list[str]:
    """Write the recordings; the cases that have none as they were not over in time."""
    for case in cases:
        if case.name in found:
            text = json.dumps(found[case.name], indent=1, ensure_ascii=False, sort_keys=True)
            case.recording.parent.mkdir(exist_ok=True)
            case.recording.write_text(text + "\n", encoding="utf-8")
    return [f"{case.name} was not over in time" for case in cases if case.name not in found]


def main() -> int:
    """The command: 0 when all cases were recorded, or none differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="seconds for all together (%(default).0f)")
    asked = parser.parse_args()
    cases = [case for case in all_cases() if not asked.cases or case.name in asked.cases]
    started = time.monotonic()
    if asked.check:
        differing = changed(cases, limit_s=asked.limit_s)
        faults = [
            f"{name} {path}: {old!r} → {new!r}" for name in differing for path, (old, new) in differing[name].items()
        ]
    else:
        faults = write(record(cases, limit_s=asked.limit_s), cases)
    sys.stdout.write("\n".join([*faults, f"{len(cases)} cases, {time.monotonic() - started:.0f} s", ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
