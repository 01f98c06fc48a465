"""Stands in for every step: `stand_in.py NAME --args…` writes what the play says into $SEATRIAL_IO.

The play is JSON in $PLAY: template → list of acts, one per attempt, the last one repeated:
{"exit": 0, "params": {name: text}, "files": {name: text or {name: text}}, "sleep": seconds, "then": seconds on SIGTERM}.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

name, args = sys.argv[1], sys.argv[2:]
io = Path(os.environ["SEATRIAL_IO"])
play = json.loads(Path(os.environ["PLAY"]).read_text())
acts = play.get(name, [{}])
counter = Path(os.environ["PLAY"]).with_name(f"{name}.attempts")
attempt = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(attempt + 1))
act = acts[min(attempt, len(acts) - 1)]
inputs = {p.relative_to(io / "in").as_posix(): p.read_text() for p in sorted((io / "in").rglob("*")) if p.is_file()}
seen = {"args": args, "env": dict(os.environ), "inputs": inputs}
Path(os.environ["PLAY"]).with_name(f"{name}.seen.json").write_text(json.dumps(seen))
print(f"{name} attempt {attempt}", flush=True)  # noqa: T201
if act.get("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(os.environ["PLAY"]).with_name(f"{name}.deaf").touch()
time.sleep(act.get("sleep", 0))
if act.get("kill"):
    os.kill(os.getpid(), act["kill"])
for param, text in act.get("params", {}).items():
    place = io / "out/params" / param
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
for file, content in act.get("files", {}).items():
    place = io / "out" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        place.mkdir()
        for inner, text in content.items():
            (place / inner).write_text(text)
    else:
        place.write_text(content)
sys.exit(act.get("exit", 0))
