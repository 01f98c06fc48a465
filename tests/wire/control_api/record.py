"""Send the exchanges to the API server of KUBECONFIG and keep its answers.

    PYTHONPATH=tests python -m wire.control_api.record <namespace>

The namespace must exist, with KServe's webhooks and the Gateway API's CRDs installed in its cluster.
"""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path
from typing import Final

import httpx
from kubernetes import client, config

from wire.control_api.exchanges import Answer, answers

RECORDED: Final = Path(__file__).with_name("recorded.json")


def api_server(kubeconfig: str | None = None) -> httpx.Client:
    """A plain HTTP client for a kubeconfig's current context."""
    settings = client.Configuration()
    config.load_kube_config(config_file=kubeconfig, client_configuration=settings)
    trust = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    if settings.cert_file:
        trust.load_cert_chain(settings.cert_file, settings.key_file)
    return httpx.Client(base_url=settings.host, verify=trust, trust_env=False, timeout=30)


def recorded() -> dict[str, Answer]:
    """What the real API server answered."""
    found: dict[str, Answer] = json.loads(RECORDED.read_text())
    return found


def main() -> None:
    """Record."""
    with api_server() as server:
        kept = answers(server, sys.argv[1])
    RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    print(f"{len(kept)} answers kept in {RECORDED.name}")  # noqa: T201 - a script for people


if __name__ == "__main__":
    main()
