"""The programs that check the files in deploy/."""

from __future__ import annotations

import pytest

from tests.support.tools import Tool, make_tool


@pytest.fixture(scope="session")
def helm() -> Tool:
    return make_tool("helm")


@pytest.fixture(scope="session")
def kubectl() -> Tool:
    return make_tool("kubectl")


@pytest.fixture(scope="session")
def promtool() -> Tool:
    return make_tool("promtool")


@pytest.fixture(scope="session")
def amtool() -> Tool:
    return make_tool("amtool")


@pytest.fixture(scope="session")
def systemd_analyze() -> Tool:
    return make_tool("systemd-analyze")


@pytest.fixture(scope="session")
def hadolint() -> Tool:
    return make_tool("hadolint")
