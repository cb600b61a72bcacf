"""Tests of the package context: it is created if missing, other keys stay, and errors are those of Porch."""

from __future__ import annotations

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.package_context import (
    ensure_package_context,
    ensure_package_context_name,
    read_package_context,
    update_package_context,
)
from tests.unit.packages.builders import KPTFILE, build_tree, read_texts

CONTEXT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  zone: b # where
  name: old
"""


def test_missing_context_is_created() -> None:
    files, findings = ensure_package_context(build_tree({"Kptfile": KPTFILE}), "app", "team/app")

    assert findings == ()
    assert read_package_context(files) == {"name": "app", "package-path": "team/app"}
    assert 'config.kubernetes.io/local-config: "true"' in read_texts(files)["package-context.yaml"]


def test_other_keys_stay() -> None:
    files, _ = ensure_package_context(build_tree({"package-context.yaml": CONTEXT}), "app", "team/app")

    expected = CONTEXT.replace("name: old", "name: app\n  package-path: team/app")
    assert read_texts(files)["package-context.yaml"] == expected
    assert ensure_package_context(files, "app", "team/app") == (files, ())


@pytest.mark.parametrize(
    ("data", "remove", "expected"),
    [
        pytest.param({}, [], "  zone: b # where\n  name: old\n", id="nothing-to-do"),
        pytest.param({"zone": "c"}, [], "  zone: c # where\n  name: old\n", id="value-changes-in-place"),
        pytest.param({"v": "2", "u": "1"}, [], '  zone: b # where\n  name: old\n  u: "1"\n  v: "2"\n', id="new-sorted"),
        pytest.param({}, ["name", "absent"], "  zone: b # where\n", id="keys-removed"),
        pytest.param({"a": "z"}, ["a"], "  zone: b # where\n  name: old\n", id="removal-wins"),
    ],
)
def test_update_package_context(data: dict[str, str], remove: list[str], expected: str) -> None:
    files, findings = update_package_context(build_tree({"package-context.yaml": CONTEXT}), data, remove, "app")

    assert findings == ()
    assert read_texts(files)["package-context.yaml"].partition("\ndata:\n")[2] == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({}, '"package-context.yaml" not found in app', id="missing"),
        pytest.param({"package-context.yaml": "a: ["}, '"package-context.yaml" cannot be parsed', id="not-yaml"),
        pytest.param(
            {"package-context.yaml": CONTEXT.replace("ConfigMap", "Secret")},
            '"package-context.yaml" must contain',
            id="kind",
        ),
        pytest.param(
            {"package-context.yaml": CONTEXT.replace("kptfile.kpt.dev", "x")},
            '"package-context.yaml" must contain',
            id="name",
        ),
        pytest.param(
            {"package-context.yaml": CONTEXT.partition("\ndata:")[0] + "\n"},
            "PackageContext no data field found",
            id="no-data",
        ),
    ],
)
def test_refused_update_of_the_context(files: dict[str, str], message: str) -> None:
    before = build_tree(files)

    after, findings = update_package_context(before, {"a": "b"}, [], "app")

    assert after == before
    assert [finding.message[: len(message)] for finding in findings] == [message]


@pytest.mark.parametrize(
    ("profile", "root", "inside"),
    [
        pytest.param("safe", {"zone": "b", "name": "web"}, True, id="safe-keeps-other-keys-and-subpackages"),
        pytest.param("compat", {"name": "web"}, False, id="compat-makes-it-afresh"),
    ],
)
def test_context_receives_the_name_of_a_new_package(profile: Profile, root: dict[str, str], inside: bool) -> None:
    files = build_tree({"package-context.yaml": CONTEXT, "db/package-context.yaml": CONTEXT})
    named, findings = ensure_package_context_name(files, "web", profile)

    assert read_package_context(named) == root
    assert ("db/package-context.yaml" in named, findings) == (inside, ())


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("kind: Other\n", id="another-kind"),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: package-context}\ndata: {name: a}\n", id="another-name"
        ),
        pytest.param("# nothing\n", id="no-object"),
    ],
)
def test_file_that_is_no_package_context_stays(content: str) -> None:
    before = build_tree({"package-context.yaml": content})

    assert ensure_package_context(before, "app", "app") == (before, ())
    assert ensure_package_context_name(before, "app") == (before, ())
    assert read_package_context(before) is None


def test_invalid_yaml_is_a_finding() -> None:
    before = build_tree({"package-context.yaml": "a: [\n"})

    after, findings = ensure_package_context(before, "app", "app")

    assert (after, len(findings)) == (before, 1)
