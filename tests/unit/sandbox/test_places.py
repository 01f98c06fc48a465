"""Where things lie, and on which ports."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.app.sandbox import lifecycle, places
from seatrial.errors import InvalidInput


@pytest.fixture
def stranger() -> Iterator[int]:
    """A port that another program listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_every_part_gets_a_port_of_its_own() -> None:
    ports = places.chosen_ports({}, {})
    assert ports.keys() == set(places.PORTS)
    assert len(set(ports.values())) == len(places.PORTS)
    assert all(map(places.is_free, ports.values()))


def test_kept_ports_are_kept() -> None:
    first = places.chosen_ports({}, {})
    assert places.chosen_ports(first, {}) == first


def test_a_kept_port_that_a_stranger_took_is_given_up(stranger: int) -> None:
    first = places.chosen_ports({}, {}) | {"s3": stranger}
    second = places.chosen_ports(first, {})
    assert second["s3"] != stranger
    assert {name: port for name, port in second.items() if name != "s3"} == {
        name: port for name, port in first.items() if name != "s3"
    }


def test_a_fixed_gateway_port_is_taken_over_the_kept_one() -> None:
    (fixed,) = places.free_ports(1)
    assert places.chosen_ports(places.chosen_ports({}, {}), {"SEATRIAL_GATEWAY_PORT": str(fixed)})["gateway"] == fixed


def test_a_fixed_gateway_port_that_is_taken_is_one_clear_error(stranger: int) -> None:
    with pytest.raises(InvalidInput, match=rf"port {stranger} is taken .* unset SEATRIAL_GATEWAY_PORT"):
        places.chosen_ports({}, {"SEATRIAL_GATEWAY_PORT": str(stranger)})


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "80 ", "８０"])
def test_a_fixed_gateway_port_must_be_a_port(text: str) -> None:
    with pytest.raises(InvalidInput, match="must be a port number"):
        places.chosen_ports({}, {"SEATRIAL_GATEWAY_PORT": text})


def test_the_object_stores_admin_ports_lie_10000_apart() -> None:
    ports = places.chosen_ports({}, {})
    assert ports["admin_grpc"] - ports["admin"] == 10_000
    assert ports["admin_grpc"] < 32_768


def test_the_socket_of_a_short_home_lies_in_it(tmp_path: Path) -> None:
    home = places.Home(Path("/h/.seatrial"))
    assert home.socket == Path("/h/.seatrial/run/sv.sock")


def test_the_socket_of_a_long_home_fits_and_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    one, other = (places.Home(Path(f"/{'long/' * 30}{name}/.seatrial")) for name in ("one", "other"))
    assert len(str(one.socket)) < 80
    assert one.socket != other.socket
    assert one.socket.is_relative_to("/run/user/1000")


def test_a_secret_file_is_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "key"
    places.write(path, b"secret", mode=0o600)
    assert path.read_bytes() == b"secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["key"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_state_file_reads_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    assert places.read_json(tmp_path / "s.json") == {}
    assert places.read_json(tmp_path / "absent.json") == {}


@pytest.mark.parametrize("name", ["a b", "é", "a'b", "a;b", "a&b", "$(id)", "a(b", "a\nb"])
def test_a_path_that_triton_cannot_serve_from_is_refused_before_anything_is_made(tmp_path: Path, name: str) -> None:
    home = tmp_path / name / ".seatrial"
    with pytest.raises(InvalidInput, match=r"set SEATRIAL_HOME to a folder with a plain path"):
        lifecycle.up(home, source=tmp_path, say=lambda _: None)
    assert not home.parent.exists()


def test_an_ordinary_path_is_taken(tmp_path: Path) -> None:
    home = places.home_of(tmp_path / "a-b_c.d+e,f~g#h=i@j%k:l" / ".seatrial")
    assert places.checked(home) == home
