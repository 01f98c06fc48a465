"""Whether a part answers, asked from inside the cluster's network."""

from __future__ import annotations

import http.client
import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

_ASK_S = 2.0


def answers(url: str, trust: ssl.SSLContext | None = None) -> bool:
    """Whether GET `url` is answered by 200. Without `trust`, any certificate will do: it is only asked for health."""
    place = urlsplit(url)
    connection: http.client.HTTPConnection
    if place.scheme == "https":
        context = trust or _any_certificate()
        connection = http.client.HTTPSConnection(str(place.hostname), place.port, timeout=_ASK_S, context=context)
    else:
        connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=_ASK_S)
    try:
        connection.request("GET", place.path or "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def listens(path: Path) -> bool:
    """Whether somebody listens on the unix socket at `path`."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def administrator(pki: Path) -> ssl.SSLContext:
    """Trusts the cluster's authority and shows the administrator's certificate."""
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    return context


def _any_certificate() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
