"""Tests of ensure-name-substring: names, references to them, and the file names of kpt."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import get_value_at
from reconciler.packages.functions.resource_names import ensure_name_substring
from tests.unit.packages.builders import build_config, format_items, run_function

PREFIX = build_config("ConfigMap", {"prepend": "p-"})
DEPENDS_ON = "config.kubernetes.io/depends-on"


def format_head(kind: str = "v1 A", name: str = "a") -> str:
    """Return the first lines of a resource."""
    api_version, kind_name = kind.split()
    return f"apiVersion: {api_version}\nkind: {kind_name}\nmetadata:\n  name: {name}\n"


@pytest.mark.parametrize(
    ("configuration", "before", "after"),
    [
        pytest.param(PREFIX, format_head(), format_head(name="p-a"), id="prefix"),
        pytest.param(build_config("ConfigMap", {"append": "-s"}), format_head(), format_head(name="a-s"), id="suffix"),
        pytest.param(PREFIX, format_head(name="a-p-b"), format_head(name="a-p-b"), id="anywhere-in-the-name"),
        pytest.param(
            build_config("EnsureNameSubstring", {"substring": "p-"}),
            format_head(),
            format_head(name="p-a"),
            id="own-kind",
        ),
        pytest.param(
            build_config("EnsureNameSubstring", {"substring": "-s", "editMode": "append"}),
            format_head(),
            format_head(name="a-s"),
            id="mode",
        ),
        pytest.param(PREFIX, format_head("v1 Namespace"), format_head("v1 Namespace"), id="no-namespace"),
        pytest.param(PREFIX, format_head("kpt.dev/v1 Kptfile"), format_head("kpt.dev/v1 Kptfile"), id="no-kptfile"),
        pytest.param(
            PREFIX,
            format_head("apiextensions.k8s.io/v1 CustomResourceDefinition"),
            format_head("apiextensions.k8s.io/v1 CustomResourceDefinition"),
            id="no-definition",
        ),
        pytest.param(
            PREFIX,
            f"{format_head('v1 ConfigMap')}---\n{format_head('v1 Pod')}spec:\n  volumes:\n  - configMap: {{name: a}} # why\n",
            f"{format_head('v1 ConfigMap', 'p-a')}---\n{format_head('v1 Pod', 'p-a')}"
            "spec:\n  volumes:\n  - configMap: {name: p-a} # why\n",
            id="references",
        ),
    ],
)
def test_names(configuration: dict[str, Any], before: str, after: str) -> None:
    output = run_function(ensure_name_substring, before, configuration)

    assert format_items(output.items) == after
    assert format_items(run_function(ensure_name_substring, after, configuration).items) == after


@pytest.mark.parametrize(
    "fields",
    [pytest.param("additionalNameFields", id="fields"), pytest.param("fieldSpecs", id="old-spelling")],
)
def test_additional_fields(fields: str) -> None:
    configuration = build_config(
        "EnsureNameSubstring", {"substring": "p-", fields: [{"kind": "A", "path": "spec/name"}]}
    )
    output = run_function(
        ensure_name_substring,
        f"{format_head()}spec:\n  name: x\n---\n{format_head('v1 B')}spec:\n  name: x\n",
        configuration,
    )

    assert [get_value_at(item.data, ("spec", "name")) for item in output.items] == ["p-x", "x"]


@pytest.mark.parametrize(
    ("entry", "safe", "compat"),
    [
        pytest.param("/namespaces/default/B/b", "/namespaces/default/B/p-b", "/namespaces/default/B/p-b", id="one"),
        pytest.param("/B/b", "/B/p-b", "/B/p-b", id="without-namespace"),
        pytest.param("/namespaces/default/B/x", "/namespaces/default/B/x", "/namespaces/default/B/x", id="outside"),
        pytest.param("/B/b,/B/x", "/B/p-b,/B/x", "/B/b,/B/x", id="upstream-reads-one-entry"),
        pytest.param("/namespaces/x/B/b", "/namespaces/x/B/b", "/namespaces/x/B/p-b", id="elsewhere"),
        pytest.param("/Namespace/n", "/Namespace/n", "/Namespace/p-n", id="upstream-follows-what-keeps-its-name"),
    ],
)
def test_depends_on(entry: str, safe: str, compat: str) -> None:
    text = f"{format_head()}  annotations:\n    {DEPENDS_ON}: {entry}\n---\n{format_head('v1 B', 'b')}---\n{format_head('v1 Namespace', 'n')}"
    profiles: tuple[tuple[Profile, str], ...] = (("safe", safe), ("compat", compat))
    for profile, expected in profiles:
        output = run_function(ensure_name_substring, text, PREFIX, profile)

        assert output.items[0].annotations[DEPENDS_ON] == expected


def test_reference_to_an_unchanged_name_is_updated_only_in_safe() -> None:
    text = f"{format_head(name='p-a')}  annotations:\n    {DEPENDS_ON}: /B/b\n---\n{format_head('v1 B', 'b')}"

    assert run_function(ensure_name_substring, text, PREFIX).items[0].annotations[DEPENDS_ON] == "/B/p-b"
    assert run_function(ensure_name_substring, text, PREFIX, "compat").items[0].annotations[DEPENDS_ON] == "/B/b"


def test_compat_moves_resources_to_new_files() -> None:
    text = f"{format_head()}spec:\n    l:\n      - x # why\n---\n{format_head()}"
    output = run_function(ensure_name_substring, text, PREFIX, "compat")

    assert [(item.path, item.index) for item in output.items] == [("a_p-a.yaml", 0), ("a_p-a.yaml", 1)]
    assert output.items[0].document.text == f"{format_head(name='p-a')}spec:\n  l:\n  - x # why\n"


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        pytest.param(None, "must be a ConfigMap or", id="none"),
        pytest.param(build_config("ConfigMap", {}), "only 1 entry is allowed", id="empty"),
        pytest.param(build_config("ConfigMap", {"prefix": "a"}), "unknown editMode: prefix", id="unknown-mode"),
        pytest.param(build_config("EnsureNameSubstring", {}), "substring must not be empty", id="no-substring"),
        pytest.param(
            build_config(
                "EnsureNameSubstring",
                {"substring": "a", "fieldSpecs": [{"path": "a"}], "additionalNameFields": [{"path": "a"}]},
            ),
            "`fieldSpecs` has been deprecated",
            id="two-spellings",
        ),
    ],
)
def test_configuration_errors(configuration: dict[str, Any] | None, reason: str) -> None:
    output = run_function(ensure_name_substring, format_head(), configuration)

    assert output.has_failed
    assert reason in output.results[0].message
