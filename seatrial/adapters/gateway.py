"""A model behind the gateway, asked as a client would; and what Traefik counted."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from seatrial import objects
from seatrial.errors import InvalidInput, Unavailable, shortened
from seatrial.names import kebab
from seatrial.ports import Answer, ArmCounts, Scrape

_COUNTER: Final = "traefik_service_requests_total"
_TIME_LIMIT: Final = httpx.Timeout(10.0, connect=3.0)


@dataclass(frozen=True)
class Gateway:
    """The gateway's two sides, and whether replayed requests alone may promote."""

    predictions: GatewayPredictions
    traffic: TraefikTraffic
    promote_on_replay: bool


def from_environment(environment: Mapping[str, str] = os.environ) -> Gateway:
    """The gateway of SEATRIAL_GATEWAY_URL and SEATRIAL_GATEWAY_METRICS_URL.

    Raises:
        InvalidInput: One of them is not set, or SEATRIAL_PROMOTE_ON_REPLAY is neither true nor false.
    """
    names = ("SEATRIAL_GATEWAY_URL", "SEATRIAL_GATEWAY_METRICS_URL", "SEATRIAL_PROMOTE_ON_REPLAY")
    values = [environment.get(name, "") for name in names]
    missing = [name for name, value in zip(names, values, strict=True) if not value]
    if missing:
        raise InvalidInput(f"{', '.join(missing)} not set; they come from the ConfigMap seatrial-gateway")
    if values[2] not in {"true", "false"}:
        raise InvalidInput(f"SEATRIAL_PROMOTE_ON_REPLAY must be true or false; got {shortened(repr(values[2]))}")
    namespace = environment.get("SEATRIAL_NAMESPACE", "seatrial")
    return Gateway(GatewayPredictions(values[0]), TraefikTraffic(values[1], namespace), values[2] == "true")


class GatewayPredictions:
    """The port `Predictions`; connections are kept, and it may be used from several threads."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIME_LIMIT, trust_env=False)

    def ask(self, model_name: str, request: bytes, *, arm: str | None = None) -> Answer:
        """Send one Open Inference Protocol request body (JSON). Never raises for what the other side does."""
        headers = {"content-type": "application/json", **({objects.ARM_HEADER: arm} if arm else {})}
        start = time.perf_counter()
        try:
            response = self._client.post(f"/v2/models/{model_name}/infer", content=request, headers=headers)
        except httpx.HTTPError as error:
            words = shortened(f"{type(error).__name__}: {error}")
            return Answer(status=0, version=None, error=words, seconds=time.perf_counter() - start)
        return answer(response.status_code, response.content, seconds=time.perf_counter() - start)

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()


def answer(status: int, body: bytes, *, seconds: float) -> Answer:
    """The Answer in a response of the Open Inference Protocol, whatever it is."""
    try:
        document = httpx.Response(status, content=body).json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return Answer(status=status, version=None, error=shortened(body.decode(errors="replace")), seconds=seconds)
    error = str(document.get("error", "")) or ("" if status == httpx.codes.OK else f"status {status}")
    return Answer(
        status=status,
        version=_version(document.get("model_version")),
        outputs=_outputs(document.get("outputs")),
        error=shortened(error),
        seconds=seconds,
    )


def _version(text: object) -> int | None:
    return int(str(text)) if re.fullmatch(r"[1-9][0-9]{0,8}", str(text), re.ASCII) else None


def _outputs(tensors: object) -> Mapping[str, Sequence[float]]:
    """Name → values of every tensor of numbers."""
    found: dict[str, Sequence[float]] = {}
    for tensor in tensors if isinstance(tensors, list) else []:
        data = tensor.get("data") if isinstance(tensor, dict) else None
        if isinstance(data, list) and all(isinstance(value, int | float) for value in data):
            found[str(tensor.get("name"))] = [float(value) for value in data]
    return found


class TraefikTraffic:
    """The port `TrafficCounts` over Traefik's Prometheus page."""

    def __init__(self, metrics_url: str, namespace: str) -> None:
        self._url = metrics_url
        self._namespace = namespace
        self._client = httpx.Client(timeout=_TIME_LIMIT, trust_env=False)

    def scrape(self, model_name: str) -> Scrape:
        """Counts per version of the weighted rule; replicas and status codes summed.

        Raises:
            Unavailable: The gateway does not tell.
        """
        try:
            response = self._client.get(self._url)
            response.raise_for_status()
        except httpx.HTTPError as error:
            raise Unavailable(f"the gateway's metrics at {self._url} cannot be read: {shortened(error)}") from error
        at = datetime.now(UTC)
        return Scrape(at=at, versions=counts(response.text, model_name, self._namespace))

    def close(self) -> None:
        """Let the connection go."""
        self._client.close()


def counts(page: str, model_name: str, namespace: str) -> dict[int, ArmCounts]:
    """Version → requests and errors through the weighted rule, from a Prometheus page of Traefik.

    An error is a status of 400 or more, or 0: Triton answers 400 to what it rejects.
    """
    found: list[tuple[int, int, str, float]] = []  # rule, version, code, count
    for sample in _samples(page):
        place = place_of(str(sample.labels.get("service", "")), model_name, namespace)
        if place is not None:
            found.append((*place, str(sample.labels.get("code", "0")), float(sample.value)))
    weighted = max((rule for rule, *_ in found), default=0)
    totals: dict[int, ArmCounts] = {}
    for rule, version, code, count in found:
        if rule == weighted:
            before = totals.get(version, ArmCounts(requests=0, errors=0))
            bad = not code.isdigit() or int(code) == 0 or int(code) >= 400
            totals[version] = ArmCounts(
                requests=before.requests + int(count), errors=before.errors + (int(count) if bad else 0)
            )
    return totals


def place_of(service: str, model_name: str, namespace: str) -> tuple[int, int] | None:
    """The rule and the version that a Traefik service stands for; None when it is not one of this model's.

    Sandbox: `<namespace>-<route>-weighted<i>-<Service>@file`; `direct<i>` for header rules, which are left out.
    Cluster: `httproute-<namespace>-<route>-gw-…-ep-…-<rule>-<hash>-svc-<namespace>-<Service>-<port>@kubernetesgateway`;
    the weighted rule is the last one, so the highest rule that counted anything is taken for it.
    """
    name = kebab(model_name)
    local = re.fullmatch(
        rf"{re.escape(f'{namespace}-{name}')}-weighted(\d+)-{re.escape(name)}-v(\d+)-predictor@file", service
    )
    if local is not None:
        return int(local[1]), int(local[2])
    cluster = re.fullmatch(
        rf"httproute-{re.escape(f'{namespace}-{name}')}-gw-.+-ep-.+?-(\d+)-[0-9a-f]{{8,}}.*-svc-"
        rf"{re.escape(f'{namespace}-{name}')}-v(\d+)-predictor-(?:http-?)?\d+@kubernetesgateway",
        service,
    )
    return None if cluster is None else (int(cluster[1]), int(cluster[2]))


def _samples(page: str) -> list[Any]:
    """The samples of the request counter; the histograms of the page are many times longer and are not parsed."""
    lines = [line for line in page.splitlines() if line.startswith((_COUNTER, f"# TYPE {_COUNTER} "))]
    return [sample for family in text_string_to_metric_families("\n".join(lines) + "\n") for sample in family.samples]
