"""Somebody at a terminal, with a sandbox and a small model of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fakes_release as made
import polars as pl
import psutil
import yaml

from seatrial.app.sandbox.ending import belongs

ROOT = Path(__file__).resolve().parents[1]
MODEL = "cart_abandonment"
"""A name that the release knows; the model behind it is a small one."""
BETWEEN = {"column": "visits", "min_value": 0, "max_value": 9}
EXPECTED = {"type": "expect_column_values_to_be_between", "kwargs": BETWEEN}


@dataclass(frozen=True)
class Person:
    """Somebody at a terminal, with a sandbox and a small model of their own."""

    home: Path
    source: Path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "SEATRIAL_HOME": str(self.home), "NO_COLOR": "1"}
        command = [sys.executable, "-m", "seatrial.app.cli", *arguments]
        return subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def says(self, *arguments: str) -> tuple[int, str]:
        with self.start(*arguments) as process:
            out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def prepare(self) -> None:
        """Rows to release with, and the model's folder."""
        first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 25, 23, tzinfo=UTC)
        each = pl.datetime_range(first, last, interval="1h", eager=True)
        made.rows(len(each)).with_columns(at=each).write_parquet(self.source / "orders.parquet")
        self.write()

    @property
    def folder(self) -> Path:
        """The model's own."""
        return self.source / "models" / MODEL

    def release(self, *arguments: str) -> subprocess.Popen[str]:
        data = f"--data={self.source / 'orders.parquet'}"
        return self.start("release", MODEL, "--source", str(self.source), data, *arguments)

    def write(self, *, bias: float = -1.0, train: str = "", steps: list[dict[str, Any]] | None = None) -> None:
        """The model's folder: a ready-made graph, or a train.py."""
        folder = self.folder
        folder.mkdir(parents=True, exist_ok=True)
        spec = made.spec_data()
        spec["model"] = MODEL
        spec["training"] = {"kind": "python"} if train else {"kind": "onnx"}
        spec["canary"] = {"steps": steps or [{"weight": 50, "min_s": 0.5, "max_s": 60}], "watch_s": 0.5,
                          "replay_per_s": 800}  # fmt: skip
        (folder / "model.yaml").write_text(yaml.safe_dump(spec))
        (folder / "model.onnx").write_bytes(made.onnx_model(bias=bias))
        (folder / "train.py").write_text(train)
        suite = {"name": MODEL, "expectations": [EXPECTED], "meta": {}}
        (folder / "expectations.json").write_text(json.dumps(suite))

    def status(self) -> dict[str, Any]:
        code, out = self.says("status", MODEL, "--json")
        assert code == 0, out
        found: dict[str, Any] = json.loads(out)["models"][0]
        return found

    def processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if belongs(process, str(self.home))]

    def commands(self) -> list[str]:
        """The command line of each process of the sandbox."""
        found = psutil.process_iter(["cmdline"])
        return [" ".join(process.info["cmdline"] or ()) for process in found if belongs(process, str(self.home))]

    def is_stopping(self) -> bool:
        """Whether the release that began last was told to stop."""
        runs = sorted((self.home / "runs").glob("*/workflow.json"), key=lambda path: path.stat().st_mtime)
        return '"shutdown"' in runs[-1].read_text()
