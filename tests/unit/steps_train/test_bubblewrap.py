"""What the owner's code may see and write under bubblewrap, read off the command: that needs no bubblewrap."""

from __future__ import annotations

from pathlib import Path

from steps.train_model import isolation

ROOT = Path(__file__).resolve().parents[3]
WORK, SOURCE = Path("/runs/work"), Path("/runs/source")


def shown(kind: str) -> set[str]:
    command = isolation._bubblewrap(WORK, SOURCE)
    return {command[place + 1] for place, word in enumerate(command) if word == kind}


def test_only_its_own_folder_can_be_written() -> None:
    assert shown("--bind") == {str(WORK)}
    assert str(SOURCE) in shown("--ro-bind-try")


def test_no_home_and_no_state_of_the_sandbox_is_shown() -> None:
    hidden = {
        Path("/"),
        Path("/root"),
        Path("/home"),
        Path.home(),
        ROOT,
        ROOT / ".seatrial",
        Path("/var"),
        Path("/run"),
    }
    assert not {Path(path) for path in shown("--ro-bind-try")} & hidden
    assert shown("--ro-bind") == set()


def test_it_has_no_network_and_no_other_process() -> None:
    assert {"--unshare-net", "--unshare-pid", "--die-with-parent"} <= set(isolation._bubblewrap(WORK, SOURCE))
