"""Who may do what on the cluster: what infra/base must say, and what the API server must answer."""

from __future__ import annotations

from typing import Final

WORKFLOWS: Final = "seatrial"
SERVING: Final = "seatrial-serving"
ROUTES: Final = "httproutes"
SERVICES: Final = "inferenceservices"

GROUPS: Final = {
    "workflows": "argoproj.io",
    "workflowtemplates": "argoproj.io",
    "cronworkflows": "argoproj.io",
    "workflowtaskresults": "argoproj.io",
    SERVICES: "serving.kserve.io",
    "gateways": "gateway.networking.k8s.io",
    ROUTES: "gateway.networking.k8s.io",
    "deployments": "apps",
    "replicasets": "apps",
    "poddisruptionbudgets": "policy",
    "pods": "",
    "services": "",
    "events": "",
    "secrets": "",
}
"""Resource → API group."""

Verbs = dict[str, set[str]]
"""Resource → verbs."""

RESULTS: Final[Verbs] = {"workflowtaskresults": {"create", "patch"}}

RIGHTS: Final[dict[str, dict[str, Verbs]]] = {
    "validate-data": {},
    "train-model": {},
    "evaluate-model": {},
    "package-model": {},
    "build-image": {},
    "executor": {WORKFLOWS: RESULTS},
    "resolve-release": {WORKFLOWS: RESULTS, SERVING: {ROUTES: {"get"}}},
    "deploy-model": {
        WORKFLOWS: RESULTS,
        SERVING: {ROUTES: {"get", "create", "patch", "delete"}, SERVICES: {"get", "create", "delete"}},
    },
    "run-canary": {WORKFLOWS: RESULTS, SERVING: {ROUTES: {"get", "patch", "delete"}}},
    "settle-release": {
        WORKFLOWS: {**RESULTS, "workflows": {"get"}},
        SERVING: {ROUTES: {"get", "patch", "delete"}, SERVICES: {"list", "delete"}},
    },
    "settle": {
        WORKFLOWS: {**RESULTS, "workflows": {"list"}},
        SERVING: {ROUTES: {"get", "list", "patch", "delete"}, SERVICES: {"list", "delete"}},
    },
}
"""Account without `seatrial-` → namespace → resource → verbs."""

LOOK: Final = {"get", "list", "watch"}
VIEWER: Final[dict[str, Verbs]] = {
    WORKFLOWS: {
        "workflows": LOOK,
        "workflowtemplates": LOOK,
        "cronworkflows": LOOK,
        "workflowtaskresults": LOOK,
        "pods": LOOK,
        "events": LOOK,
        "pods/log": {"get"},
    },
    SERVING: {
        ROUTES: LOOK,
        "gateways": LOOK,
        SERVICES: LOOK,
        "deployments": LOOK,
        "replicasets": LOOK,
        "poddisruptionbudgets": LOOK,
        "pods": LOOK,
        "services": LOOK,
        "events": LOOK,
        "pods/log": {"get"},
    },
}
OPERATOR: Final[dict[str, Verbs]] = {
    WORKFLOWS: {
        **VIEWER[WORKFLOWS],
        "workflows": LOOK | {"create", "update", "patch", "delete"},
        "pods": LOOK | {"delete"},
    },
    SERVING: {
        **VIEWER[SERVING],
        ROUTES: LOOK | {"create", "patch", "delete"},
        SERVICES: LOOK | {"delete"},
    },
}
