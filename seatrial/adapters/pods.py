"""What the pods of Workflows print."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from kubernetes import client

from seatrial.adapters.kubernetes import translating

MAIN: Final = "main"
"""The container of a step. Source: argo-workflows, workflow/common."""
_TIME_LIMIT_S: Final = (3.0, 60.0)
"""To connect, to answer."""


class PodLogs:
    """Logs of one namespace's pods."""

    def __init__(self, core: client.CoreV1Api, namespace: str) -> None:
        self._core = core
        self._namespace = namespace

    def read(self, pod: str) -> bytes | None:
        """What its step printed so far; None: there is no such pod.

        Raises:
            InvalidInput: The person may not read it.
            Unavailable: The API does not answer, or the pod has not begun.
        """
        with translating(f"read the log of pod {pod}"):
            try:
                answer = self._core.read_namespaced_pod_log(
                    pod, self._namespace, container=MAIN, _preload_content=False, _request_timeout=_TIME_LIMIT_S
                )
            except client.ApiException as error:
                if error.status == HTTPStatus.NOT_FOUND:
                    return None
                raise
            data: bytes = answer.data
            return data
