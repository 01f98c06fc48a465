"""What the parts are started with."""

from __future__ import annotations

import configparser
import itertools
import re
from pathlib import Path

import pytest

from seatrial.app.sandbox import programs
from seatrial.app.sandbox.places import PORTS, Home
from seatrial.app.sandbox.supervisor import Program, leashed, main_section, program_section
from seatrial.errors import InvalidInput

HOME = Home(Path("/home/somebody/.seatrial"))
PORT = {name: 21_000 + index for index, name in enumerate(PORTS)}


@pytest.fixture(autouse=True)
def _every_program_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_program", lambda name: f"/bin/{name}")


def everything() -> dict[str, Program]:
    return {program.name: program for program in programs.all_programs(HOME, PORT, {"AWS_ACCESS_KEY_ID": "seatrial"})}


def test_no_part_reports_to_anybody() -> None:
    found = everything()
    assert "-master.telemetry=false" in found["s3"].command
    assert {"--global.checknewversion=false", "--global.sendanonymoususage=false"} <= set(found["gateway"].command)
    assert found["tracking"].environment["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert found["tracking"].environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    assert all(program.environment["DO_NOT_TRACK"] == "true" for program in found.values())
    assert all(program.environment["GX_ANALYTICS_ENABLED"] == "false" for program in found.values())


def test_the_quiet_settings_reach_supervisords_configuration() -> None:
    text = "\n".join(program_section(program) for program in everything().values())
    parsed = configparser.RawConfigParser()
    parsed.read_string(text)
    for name in ("s3", "tracking", "gateway", "control"):
        assert 'DO_NOT_TRACK="true"' in parsed[f"program:{name}"]["environment"]
    assert "-master.telemetry=false" in parsed["program:s3"]["command"]
    assert "--global.sendanonymoususage=false" in parsed["program:gateway"]["command"]
    assert 'MLFLOW_DISABLE_TELEMETRY="true"' in parsed["program:tracking"]["environment"]


def test_every_address_is_this_machines_own() -> None:
    found = everything()
    assert {"-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-webdav=false"} <= set(found["s3"].command)
    addresses = [argument for argument in found["gateway"].command if ".address=" in argument]
    assert len(addresses) == 2
    assert all(re.search(r"=127\.0\.0\.1:\d+$", address) for address in addresses)


def test_the_object_store_is_told_every_one_of_its_ports() -> None:
    command = everything()["s3"].command
    given = {int(argument.rpartition("=")[2]) for argument in command if re.match(r"-[a-z0-9.]*port[a-z.]*=", argument)}
    wanted = {
        "s3",
        "s3_grpc",
        "master",
        "master_grpc",
        "volume",
        "volume_grpc",
        "filer",
        "filer_grpc",
        "admin",
        "admin_grpc",
    }
    assert {PORT[name] for name in wanted} | {0} == given


def test_latency_buckets_are_one_fine_log_spaced_grid() -> None:
    bounds = programs.LATENCY_BUCKETS_S
    assert len(bounds) >= 20
    assert bounds[0] <= 0.001
    assert bounds[-1] >= 5
    assert all(right / left == pytest.approx(1.5, rel=1e-2) for left, right in itertools.pairwise(bounds))
    flag = next(a for a in everything()["gateway"].command if a.startswith("--metrics.prometheus.buckets="))
    assert [float(bound) for bound in flag.partition("=")[2].split(",")] == pytest.approx(bounds, rel=1e-5)


def test_a_section_survives_spaces_quotes_and_percent_signs() -> None:
    program = Program(
        name="odd",
        command=("/opt/my tools/run", "--share=10%", "it's"),
        environment={"TEXT": 'a "b" \\ 5%'},
        directory=Path("/some where"),
        log=Path("/x.log"),
    )
    section = program_section(program)
    assert "'/opt/my tools/run' --share=10%% 'it'\"'\"'s'" in section
    assert 'environment=TEXT="a \\"b\\" \\\\ 5%%"' in section


def test_a_line_break_never_gets_into_the_configuration() -> None:
    program = Program(name="odd", command=("run", "a\nb"), directory=Path("/"), log=Path("/x"))
    with pytest.raises(InvalidInput, match="line break"):
        program_section(program)


def test_a_child_dies_with_its_parent_where_setpriv_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/setpriv")
    assert leashed(("run",)) == ("/usr/bin/setpriv", "--pdeathsig", "KILL", "--", "run")
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert leashed(("run",)) == ("run",)


def test_supervisord_listens_on_its_socket_alone() -> None:
    text = main_section(socket_path=Path("/run/s"), folder=Path("/h"), identity="/h", user=None)
    parsed = configparser.RawConfigParser()
    parsed.read_string(text)
    assert parsed["unix_http_server"]["file"] == "/run/s"
    assert parsed["unix_http_server"]["chmod"] == "0700"
    assert "inet_http_server" not in parsed
    assert "user" not in parsed["supervisord"]
