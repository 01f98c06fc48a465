"""The control API: the Kubernetes REST paths of the objects that seatrial makes, and nothing else.

get, list, create, merge patch, delete and status of inferenceservices and httproutes; get of workflows, from the
runner's files. No watch, no finalizers, no other kinds. `POST /faults` makes it misbehave on purpose.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from seatrial.app.sandbox.control.faults import Faults
from seatrial.app.sandbox.control.kinds import KINDS, Kind, Manifest, Refused, bad_request
from seatrial.app.sandbox.control.storage import Objects
from seatrial.app.sandbox.places import NAMESPACE, read_json
from seatrial.errors import shortened

BODY_MAX: Final = 3 * 1024 * 1024
"""Bytes. Source: kube-apiserver, --max-request-body-bytes' default."""

HANG_S: Final = 60.0

_VERBS: Final = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
_MERGE_PATCH: Final = "application/merge-patch+json"

Handler = Callable[[Request], Awaitable[Response]]


def application(
    objects: Objects,
    runs: Path,
    *,
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    """The API over `objects` and the runner's folder `runs`."""
    api = _Api(objects, runs)
    namespaced = "/apis/{group}/{version}/namespaces/{namespace}/{plural}"

    @asynccontextmanager
    async def whole_life(_: Starlette) -> AsyncIterator[None]:
        if lifespan is None:
            yield
        else:
            async with lifespan():
                yield

    return Starlette(
        routes=[
            Route(namespaced, api.answering(api.collection), methods=["GET", "POST"]),
            Route(namespaced + "/{name}", api.answering(api.item), methods=["GET", "PATCH", "DELETE"]),
            Route(namespaced + "/{name}/status", api.answering(api.item), methods=["GET"]),
            Route("/faults", api.faults_page, methods=["GET", "POST", "DELETE"]),
            Route("/readyz", _ok),
            Route("/livez", _ok),
            Route("/v2/{rest:path}", _no_backend, methods=["GET", "POST"]),
        ],
        exception_handlers={404: _unknown_path, 405: _unknown_method},
        lifespan=whole_life,
    )


class _Api:
    def __init__(self, objects: Objects, runs: Path) -> None:
        self.objects = objects
        self.runs = runs
        self.faults = Faults()

    def answering(self, handler: Handler) -> Handler:
        """`handler` behind the faults, with refusals as bodies of kind Status."""

        async def answer(request: Request) -> Response:
            try:
                await self._misbehave(request)
                return await handler(request)
            except Refused as refused:
                return JSONResponse(refused.status(), refused.code)

        return answer

    async def _misbehave(self, request: Request) -> None:
        listing = request.method == "GET" and "name" not in request.path_params
        fault = self.faults.take("list" if listing else _VERBS.get(request.method, ""))
        if fault == "hang":
            await asyncio.sleep(HANG_S)
        elif fault is not None:
            raise Faults.refusal(fault)

    async def collection(self, request: Request) -> Response:
        kind = _kind(request)
        if request.method == "POST":
            return JSONResponse(self.objects.create(kind, await _body(request, "application/json")), 201)
        if request.query_params.get("watch", "false") not in {"false", "0"}:
            raise Refused(405, "MethodNotAllowed", "watch is not supported on this resource by the sandbox")
        return JSONResponse(
            {
                "apiVersion": kind.api_version,
                "kind": f"{kind.name}List",
                "metadata": {"resourceVersion": self.objects.version},
                "items": self.objects.list(kind, selector(request.query_params.get("labelSelector", ""))),
            }
        )

    async def item(self, request: Request) -> Response:
        name = request.path_params["name"]
        if request.path_params["group"] == "argoproj.io":
            return JSONResponse(self._workflow(request, name))
        kind = _kind(request)
        if request.method == "GET":
            return JSONResponse(self.objects.get(kind, name))
        if request.method == "PATCH":
            return JSONResponse(self.objects.patch(kind, name, await _body(request, _MERGE_PATCH)))
        options = await _body(request, "application/json", empty_is_fine=True)
        preconditions = options.get("preconditions") or {}
        deleted = self.objects.delete(kind, name, preconditions)
        details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": deleted["metadata"]["uid"]}
        return JSONResponse(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    def _workflow(self, request: Request, name: str) -> Manifest:
        known = (request.path_params["version"], request.path_params["plural"]) == ("v1alpha1", "workflows")
        if request.method != "GET" or not known:
            raise Refused(405, "MethodNotAllowed", "the sandbox only reads workflows; the runner writes them")
        found = read_json(self.runs / name / "workflow.json") if name not in {".", ".."} else {}
        if not found or request.path_params["namespace"] != NAMESPACE:
            raise Refused(404, "NotFound", f'workflows.argoproj.io "{name}" not found')
        return found

    async def faults_page(self, request: Request) -> Response:
        try:
            if request.method == "POST":
                self.faults.add(await _body(request, "application/json"))
            elif request.method == "DELETE":
                self.faults.waiting = []
        except Refused as refused:
            return JSONResponse(refused.status(), refused.code)
        return JSONResponse({"waiting": [vars(fault) for fault in self.faults.waiting]})


def selector(text: str) -> Callable[[dict[str, str]], bool]:
    """A label selector of equalities, `a=b,c!=d`, as a predicate over labels. Raises Refused."""
    terms: list[tuple[str, str, bool]] = []
    for term in filter(None, text.split(",")):
        key, sign, value = term.partition("!=" if "!=" in term else "=")
        if not sign or not key.strip():
            raise bad_request(f"unable to parse requirement: the sandbox takes key=value and key!=value; got {term!r}")
        terms.append((key.strip(), value.removeprefix("=").strip(), sign == "="))
    return lambda labels: all((labels.get(key) == value) is equal for key, value, equal in terms)


def _kind(request: Request) -> Kind:
    path = request.path_params
    kind = KINDS.get((path["group"], path["version"], path["plural"]))
    if kind is None:
        raise Refused(404, "NotFound", "the server could not find the requested resource")
    if path["namespace"] != NAMESPACE:
        raise Refused(404, "NotFound", f'namespaces "{path["namespace"]}" not found')
    return kind


async def _body(request: Request, media_type: str, *, empty_is_fine: bool = False) -> Manifest:
    data = await request.body()
    if len(data) > BODY_MAX:
        raise Refused(413, "RequestEntityTooLarge", f"the request body may have at most {BODY_MAX} bytes")
    if not data and empty_is_fine:
        return {}
    given = request.headers.get("content-type", "").partition(";")[0].strip()
    if given != media_type:
        raise Refused(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {media_type}",
        )
    try:
        body: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the object provided is not JSON: {shortened(error)}") from error
    if not isinstance(body, dict) or not isinstance(body.get("metadata", {}), dict):
        raise bad_request("the object provided is unrecognized: it and its metadata must be JSON objects")
    return body


async def _ok(_: Request) -> Response:
    return PlainTextResponse("ok")


async def _no_backend(_: Request) -> Response:
    """Where the gateway sends the share of a Service that does not exist."""
    return JSONResponse({"error": "the route names a service that does not exist"}, 500)


async def _unknown_path(_: Request, __: Exception) -> Response:
    return JSONResponse(Refused(404, "NotFound", "the server could not find the requested resource").status(), 404)


async def _unknown_method(_: Request, __: Exception) -> Response:
    refused = Refused(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    return JSONResponse(refused.status(), 405)
