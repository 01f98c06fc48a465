"""Stands in for every step: `stand_in.py NAME --args…` does what the play says.

The play is JSON at $PLAY: template → list of acts, one per attempt, the last one repeated. An act may hold "sleep"
(seconds), "deaf" (SIGTERM is ignored), "child" (leave one behind), "kill" (a signal for itself), "params" (texts),
"files" (name → text, or a folder's name → text), "link" (an output that is a symlink), "last_words" (why it fails),
"exit" (code). What it saw lies in `<name>.seen.json` beside the play; `<name>.up` says it runs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

name, args = sys.argv[1], sys.argv[2:]
io, play = Path(os.environ["SEATRIAL_IO"]), Path(os.environ["PLAY"])


def beside(ending: str) -> Path:
    return play.with_name(f"{name}.{ending}")


acts = json.loads(play.read_text()).get(name, [{}])
attempt = int(beside("attempts").read_text()) if beside("attempts").exists() else 0
beside("attempts").write_text(str(attempt + 1))
act = acts[min(attempt, len(acts) - 1)]
given = [path for path in sorted((io / "in").rglob("*")) if path.is_file()]
seen = {
    "args": args,
    "env": dict(os.environ),
    "folder": str(Path.cwd()),
    "pid": os.getpid(),
    "inputs": {path.relative_to(io / "in").as_posix(): path.read_text() for path in given},
}
beside("seen.json").write_text(json.dumps(seen))
sys.stdout.write(f"{name} attempt {attempt}\n")
sys.stdout.flush()
if act.get("deaf"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if act.get("child"):
    child = subprocess.Popen(["sleep", "60"])
    beside("child").write_text(str(child.pid))
beside("up").touch()
time.sleep(act.get("sleep", 0))
if act.get("kill"):
    os.kill(os.getpid(), act["kill"])
(io / "out/params").mkdir(parents=True, exist_ok=True)
for param, text in act.get("params", {}).items():
    (io / "out/params" / param).write_text(text)
for file, content in act.get("files", {}).items():
    if isinstance(content, dict):
        (io / "out" / file).mkdir()
    for inner, text in content.items() if isinstance(content, dict) else [("", content)]:
        (io / "out" / file / inner).write_text(text)
if "link" in act:
    (io / "out" / act["link"]).symlink_to("/etc/hostname")
if "last_words" in act:
    Path(os.environ["SEATRIAL_TERMINATION_LOG"]).write_text(act["last_words"], encoding="utf-8")
sys.exit(act.get("exit", 0))
