"""The names of changed settings, without their values."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.bootstrap.settings_changes import list_changed_settings
from reconciler.settings import Settings


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        pytest.param({}, {}, (), id="no-change"),
        pytest.param({}, {"poll_seconds": 7}, ("poll_seconds",), id="top-level"),
        pytest.param({}, {"log": {"level": "info"}}, (), id="default-value"),
        pytest.param(
            {"log": {"level": "debug"}, "shard": "1/2"}, {"shard": "2/2"}, ("shard", "log.level"), id="several"
        ),
        pytest.param(
            {}, {"server": {"tls": {"cert_file": "a", "key_file": "b"}}}, ("server.tls.cert_file", "server.tls.key_file"),
            id="nested-groups",
        ),
        pytest.param(
            {"git": {"credentials": [{"url": "h", "read": {"token_file": "a"}}]}},
            {"git": {"credentials": [{"url": "h", "read": {"token_file": "b"}}]}},
            ("git.credentials",),
            id="list",
        ),
    ],
)  # fmt: skip
def test_changed_settings(before: dict[str, Any], after: dict[str, Any], names: tuple[str, ...]) -> None:
    assert list_changed_settings(Settings.model_validate(before), Settings.model_validate(after)) == names
