"""What all tests share: the corpus, and the rule that CI skips nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real files that tests read; a bare clone does not have it."""
    folder = ROOT.parent / "shared" / "corpus"
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"the corpus is missing at {folder}; CI must have it")
        pytest.skip("the corpus of real files is not beside this clone")
    return folder


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI a skipped test fails the run: a tier that did not run is not green."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
