"""The programs that check the files in deploy/."""

from __future__ import annotations

import pytest

from tests.support.programs import Program, make_program


@pytest.fixture(scope="session")
def helm() -> Program:
    return make_program("helm")


@pytest.fixture(scope="session")
def kubectl() -> Program:
    return make_program("kubectl")


@pytest.fixture(scope="session")
def promtool() -> Program:
    return make_program("promtool")


@pytest.fixture(scope="session")
def amtool() -> Program:
    return make_program("amtool")


@pytest.fixture(scope="session")
def systemd_analyze() -> Program:
    return make_program("systemd-analyze")


@pytest.fixture(scope="session")
def hadolint() -> Program:
    return make_program("hadolint")
