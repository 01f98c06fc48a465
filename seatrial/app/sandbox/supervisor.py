"""supervisord: the one process tree under which everything of the sandbox runs."""

from __future__ import annotations

import http.client
import shlex
import shutil
import socket
import xmlrpc.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from seatrial.errors import InvalidInput, Unavailable, shortened

IDENTITY_VARIABLE: Final = "SEATRIAL_SANDBOX"
"""In the environment of every process of a sandbox: which home it belongs to."""

_CALL_S: Final = 10.0

_NOT_RUNNING: Final = frozenset({"STOPPED", "EXITED", "FATAL", "UNKNOWN"})


@dataclass(frozen=True, kw_only=True)
class Program:
    """One supervised process."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path
    log: Path
    stop_s: int = 5
    """Seconds between SIGTERM and SIGKILL."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """What supervisord says of a program."""

    name: str
    state: str
    pid: int
    note: str

    @property
    def over(self) -> bool:
        """Whether nothing runs and nothing will start by itself."""
        return self.state in _NOT_RUNNING


def leashed(command: tuple[str, ...]) -> tuple[str, ...]:
    """`command` so that it dies with its parent, however the parent dies; as it is where setpriv is missing."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--", *command) if setpriv else command


def program_section(program: Program) -> str:
    """The program as supervisord's configuration has it; restarted whenever it ends."""
    environment = ",".join(f"{name}={_quoted(value)}" for name, value in sorted(program.environment.items()))
    lines = [
        f"[program:{program.name}]",
        f"command={_escaped(shlex.join(leashed(program.command)))}",
        f"directory={_escaped(str(program.directory))}",
        f"environment={environment}",
        "autostart=true",
        "autorestart=true",
        "startsecs=1",
        "startretries=1000",
        f"stopwaitsecs={program.stop_s}",
        "killasgroup=true",
        "redirect_stderr=true",
        f"stdout_logfile={_escaped(str(program.log))}",
        "stdout_logfile_maxbytes=5MB",
        "stdout_logfile_backups=1",
    ]
    return "\n".join(lines) + "\n"


def main_section(*, socket_path: Path, folder: Path, identity: str, user: str | None) -> str:
    """Supervisord's own configuration; programs added later lie in `folder`/pods/."""
    lines = [
        "[unix_http_server]",
        f"file={_escaped(str(socket_path))}",
        "chmod=0700",
        "[supervisord]",
        "nodaemon=false",
        "umask=022",
        "minfds=1024",
        f"identifier={_escaped(identity)}",
        f"logfile={_escaped(str(folder / 'supervisord.log'))}",
        "logfile_maxbytes=5MB",
        "logfile_backups=1",
        f"pidfile={_escaped(str(folder / 'supervisord.pid'))}",
        f"childlogdir={_escaped(str(folder))}",
        f"environment={IDENTITY_VARIABLE}={_quoted(identity)}",
        *([f"user={user}"] if user else []),
        "[rpcinterface:supervisor]",
        "supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface",
        "[include]",
        f"files = {_escaped(str(folder / 'pods'))}/*.conf",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    if "\n" in text or " ;" in text:
        raise InvalidInput(f"supervisord cannot take a line break or ' ;' in a path; got {shortened(repr(text))}")
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_CALL_S)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_CALL_S)
        self.sock.connect(self.path)


class _UnixTransport(xmlrpc.client.Transport):
    """One connection, which `close` closes, whether it ever connected or not."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._unix = _UnixConnection(path)

    def make_connection(self, host: object) -> http.client.HTTPConnection:  # noqa: ARG002 - the socket is the host
        return self._unix

    def close(self) -> None:
        self._unix.close()


class Supervisor:
    """A supervisord that listens on a unix socket."""

    def __init__(self, socket_path: Path) -> None:
        self.socket_path = socket_path

    def alive(self) -> bool:
        """Whether it answers and is not on its way out."""
        try:
            return bool(self._call("supervisor.getState")["statename"] == "RUNNING")
        except Unavailable:
            return False

    def processes(self) -> dict[str, Process]:
        """Every program by name."""
        return {
            str(found["name"]): Process(
                name=str(found["name"]),
                state=str(found["statename"]),
                pid=int(found["pid"]),
                note=str(found["spawnerr"] or found["description"]),
            )
            for found in self._call("supervisor.getAllProcessInfo")
        }

    def pid(self) -> int:
        """Of supervisord itself."""
        return int(self._call("supervisor.getPID"))

    def add(self, name: str) -> None:
        """Read the configuration again and start the program `name`; there already is fine."""
        self._call("supervisor.reloadConfig")
        self._tolerating({"ALREADY_ADDED"}, "supervisor.addProcessGroup", name)

    def start(self, name: str) -> None:
        """Start a program that is known and stopped."""
        self._tolerating({"ALREADY_STARTED"}, "supervisor.startProcess", name, False)  # noqa: FBT003

    def stop(self, name: str) -> None:
        """Ask a program to stop, without waiting."""
        self._tolerating({"NOT_RUNNING", "BAD_NAME"}, "supervisor.stopProcess", name, False)  # noqa: FBT003

    def remove(self, name: str) -> None:
        """Forget a stopped program."""
        self._tolerating({"BAD_NAME"}, "supervisor.removeProcessGroup", name)

    def stop_all(self) -> None:
        """Ask every program to stop, all at once, without waiting."""
        self._call("supervisor.stopAllProcesses", False)  # noqa: FBT003

    def shutdown(self) -> None:
        """Ask supervisord to end."""
        self._call("supervisor.shutdown")

    def _tolerating(self, faults: set[str], method: str, *arguments: object) -> None:
        try:
            self._call(method, *arguments)
        except Unavailable as error:
            if not isinstance(error.__cause__, xmlrpc.client.Fault):
                raise
            if error.__cause__.faultString.split(":")[0] not in faults:
                raise

    def _call(self, method: str, *arguments: object) -> Any:  # noqa: ANN401 - XML-RPC's answer
        proxy = xmlrpc.client.ServerProxy("http://localhost", transport=_UnixTransport(str(self.socket_path)))
        try:
            with proxy:
                return getattr(proxy, method)(*arguments)
        except xmlrpc.client.Fault as error:
            raise Unavailable(f"supervisord refused {method}{arguments}: {shortened(error.faultString)}") from error
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise Unavailable(f"supervisord does not answer at {self.socket_path}: {shortened(error)}") from error
