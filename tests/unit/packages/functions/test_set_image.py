"""Tests of set-image: which images match, and their new values in each profile."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import get_value_at
from reconciler.packages.functions.set_image import set_image
from tests.unit.packages.builders import build_config, list_messages, run_function

DIGEST = f"sha256:{'a' * 64}"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec:\n  {list}:\n  - image: {image}\n"


@pytest.mark.parametrize(
    ("wish", "before", "safe", "compat"),
    [
        pytest.param({"newTag": "2"}, "nginx:1", "nginx:2", "nginx:2", id="tag"),
        pytest.param({"newTag": "2"}, "nginx", "nginx:2", "nginx:2", id="no-tag-before"),
        pytest.param({"newTag": "2"}, f"nginx:1@{DIGEST}", "nginx:2", "nginx:2", id="tag-ends-a-digest"),
        pytest.param({"newName": "a/b"}, "nginx", "a/b", "a/b", id="name"),
        pytest.param({"newName": "a/b"}, "nginx:1", "a/b:1", "a/b1", id="name-keeps-the-tag"),
        pytest.param(
            {"newName": "a/b"}, f"nginx@{DIGEST}", f"a/b@{DIGEST}", f"a/b{DIGEST}", id="name-keeps-the-digest"
        ),
        pytest.param(
            {"newTag": "2", "digest": DIGEST}, "nginx:1", f"nginx@{DIGEST}", f"nginx@{DIGEST}", id="digest-beats-tag"
        ),
        pytest.param({"newTag": "2"}, "x/nginx:1", "x/nginx:1", "x/nginx:1", id="another-folder"),
        pytest.param({"newTag": "2"}, "nginx-x:1", "nginx-x:1", "nginx-x:1", id="another-name"),
        pytest.param({"name": "h:5/n", "newTag": "2"}, "h:5/n:1", "h:5/n:2", "h:5/n:2", id="port"),
    ],
)
def test_images(wish: dict[str, str], before: str, safe: str, compat: str) -> None:
    profiles: tuple[tuple[Profile, str], ...] = (("safe", safe), ("compat", compat))
    for profile, after in profiles:
        text = POD.format(list="containers", image=before)
        output = run_function(set_image, text, build_config("ConfigMap", {"name": "nginx", **wish}), profile)

        assert get_value_at(output.items[0].data, ("spec", "containers", 0, "image")) == after
        assert list_messages(output) == [("info", f"summary: updated a total of {int(after != before)} image(s)")]


@pytest.mark.parametrize(
    ("kind", "path", "profiles"),
    [
        pytest.param("v1 Pod", "spec.containers", "safe compat", id="pod"),
        pytest.param("v1 Pod", "spec.initContainers", "safe", id="init-containers"),
        pytest.param("apps/v1 Deployment", "spec.template.spec.containers", "safe compat", id="deployment"),
        pytest.param("apps/v1 StatefulSet", "spec.template.spec.containers", "safe compat", id="stateful-set"),
        pytest.param("v1 PodTemplate", "template.spec.containers", "safe", id="pod-template"),
        pytest.param("batch/v1 Job", "spec.template.spec.containers", "safe", id="job"),
        pytest.param("batch/v1 CronJob", "spec.jobTemplate.spec.template.spec.containers", "safe", id="cron-job"),
        pytest.param("v1 Other", "spec.containers", "", id="any-other-kind"),
    ],
)
def test_kinds(kind: str, path: str, profiles: str) -> None:
    api_version, name = kind.split()
    keys, value = path.split("."), "[{image: nginx}]"
    for key in reversed(keys):
        value = f"{{{key}: {value}}}"
    text = f"apiVersion: {api_version}\nkind: {name}\nmetadata: {{name: a}}\n{value[1:-1]}\n"
    for profile in ("safe", "compat"):
        output = run_function(set_image, text, build_config("ConfigMap", {"name": "nginx", "newTag": "2"}), profile)

        changed = get_value_at(output.items[0].data, (*keys, 0, "image")) == "nginx:2"
        assert changed == (profile in profiles.split())


def test_additional_fields() -> None:
    fields = [{"kind": "My", "path": "spec/engine/image"}]
    wish = build_config("SetImage", {"image": {"name": "nginx", "newName": "a"}, "additionalImageFields": fields})
    text = "apiVersion: x/v1\nkind: My\nmetadata: {name: a}\nspec: {engine: {image: nginx:1}}\n"
    output = run_function(set_image, text, wish, "compat")

    assert get_value_at(output.items[0].data, ("spec", "engine", "image")) == "a:1"


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        pytest.param(None, "must be a ConfigMap or a SetImage", id="none"),
        pytest.param(build_config("ConfigMap", {"newTag": "1"}), "must specify `name`", id="no-name"),
        pytest.param(build_config("ConfigMap", {"name": "a"}), "must specify one of", id="nothing-new"),
        pytest.param(build_config("ConfigMap", {"tag": "a"}), "wrong field name tag", id="unknown-field"),
    ],
)
def test_configuration_errors(configuration: dict[str, Any] | None, reason: str) -> None:
    output = run_function(set_image, POD.format(list="containers", image="nginx"), configuration)

    assert output.has_failed
    assert reason in output.results[0].message
