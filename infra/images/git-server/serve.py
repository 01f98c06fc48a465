"""Bare git repositories over ssh and http.

    python3 serve.py [--root /srv/git] [--port 8080]

$GIT_REPOSITORIES   names, like `models other`: bare repositories <root>/<name>.git, made where they are missing
$GIT_TOKEN          the password, for any user, of http://<host>:8080/<name>.git; without it http is shut
/etc/git-server     authorized_keys, and ssh_host_ed25519_key if the host's key must last: ssh://git@<host>:2222/srv/git/…

GET /healthz answers without a token. What is pushed lasts as long as <root> does. Only the standard library is used.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

KEYS = Path("/etc/git-server")
HOST_KEY = Path("/tmp/ssh_host_ed25519_key")  # noqa: S108 - the pod's own
CHUNK = 65_536


def make_repositories(root: Path, names: list[str]) -> None:
    """Bare repositories that may be cloned in part and pushed to; those that are there stay."""
    for name in names:
        place = root / f"{name}.git"
        if not place.exists():
            subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(place)], check=True)
        for setting in ("uploadpack.allowFilter", "http.receivepack", "uploadpack.allowAnySHA1InWant"):
            subprocess.run(["git", "-C", str(place), "config", setting, "true"], check=True)


def start_ssh() -> subprocess.Popen[bytes] | None:
    """Start sshd, where somebody's key is known."""
    if not (KEYS / "authorized_keys").is_file():
        return None
    given = KEYS / HOST_KEY.name
    HOST_KEY.unlink(missing_ok=True)
    if given.is_file():
        shutil.copyfile(given, HOST_KEY)
    else:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(HOST_KEY)], check=True)
    HOST_KEY.chmod(0o600)  # sshd refuses a key that others may read
    return subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", "/etc/sshd_config"])


class Git(BaseHTTPRequestHandler):
    """Passes requests that bring the token on to `git http-backend`. Source: git-http-backend(1), RFC 3875."""

    protocol_version = "HTTP/1.1"
    root: Path
    token: str

    def do_GET(self) -> None:
        """Fetch, or whether we are here."""
        if self.path == "/healthz":
            self._refuse(HTTPStatus.OK, "here")
        else:
            self._serve()

    def do_POST(self) -> None:
        """Fetch and push."""
        self._serve()

    def _serve(self) -> None:
        self.close_connection = True
        if not self._may():
            self.send_response(HTTPStatus.UNAUTHORIZED)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        backend = subprocess.Popen(
            ["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment()
        )
        with backend:
            if backend.stdin is None or backend.stdout is None:
                raise RuntimeError("a pipe that was asked for is not there")
            for chunk in self._body():
                backend.stdin.write(chunk)
            backend.stdin.close()
            self._answer(backend.stdout)

    def _may(self) -> bool:
        kind, _, said = self.headers.get("Authorization", "").partition(" ")
        try:
            given = base64.b64decode(said).decode().partition(":")[2] if kind == "Basic" else said
        except ValueError:
            return False
        return bool(self.token) and hmac.compare_digest(given.encode(), self.token.encode())

    def _environment(self) -> dict[str, str]:
        url = urlsplit(self.path)
        return {
            "PATH": os.environ["PATH"],
            "HOME": "/tmp",  # noqa: S108 - the pod's own
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "PATH_INFO": unquote(url.path),
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REMOTE_USER": "git",
            "REMOTE_ADDR": self.client_address[0],
        }

    def _body(self) -> Iterator[bytes]:
        """The request's body, of a known length or in chunks. Source: RFC 9112, 7.1."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length", "0"))
        while left > 0 and (chunk := self.rfile.read(min(left, CHUNK))):
            left -= len(chunk)
            yield chunk

    def _answer(self, output: IO[bytes]) -> None:
        status, headers = HTTPStatus.OK.value, []
        while line := output.readline().strip():
            name, _, value = line.decode().partition(": ")
            if name == "Status":
                status = int(value.split(" ")[0])
            else:
                headers.append((name, value))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        shutil.copyfileobj(output, self.wfile)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


def main() -> int:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("/srv/git"))
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args()
    make_repositories(given.root, os.environ.get("GIT_REPOSITORIES", "models").split())
    ssh = start_ssh()
    handler = type("Handler", (Git,), {"root": given.root, "token": os.environ.get("GIT_TOKEN", "")})
    server = ThreadingHTTPServer(("", given.port), handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the first process of a container is not ended by default
    sys.stderr.write(f"http on {given.port}, ssh {'on 2222' if ssh else 'off: no authorized_keys'}\n")
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return 0
    finally:
        if ssh is not None:
            ssh.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
