"""Says at the end of a run what was not compared with another library."""

from __future__ import annotations

import pytest

from tests.attribution.channel_attribution import MISSING_ORACLE


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.getreports("skipped")
    missing = [each.nodeid for each in skipped if MISSING_ORACLE in str(each.longrepr)]
    if missing:
        terminalreporter.section("NOT TESTED WITH CHANNELATTRIBUTION", sep="!", red=True, bold=True)
        terminalreporter.line(
            f"{len(missing)} tests were skipped. Kept answers were compared; make setup installs "
            "the library where there is a C++ compiler"
        )
