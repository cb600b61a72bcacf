"""Pipelines of programs give the results of kpt, if kpt is installed.

One difference is intended: kpt reads a `List` as a `ResourceList`, and the reconciler reports an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.packages.pipeline import RenderResult, render_pipelines
from tests.runners.programs import editing, functions, program
from tests.unit.packages.builders import build_tree, read_texts

KPT = shutil.which("kpt")
pytestmark = pytest.mark.skipif(KPT is None, reason="kpt is not installed")

WEB = """\
# a web server
apiVersion: apps/v1
kind: Deployment # of the first day
metadata:
  name: web
spec:
  # enough for a small site
  replicas: 2 # two
  args: # in this order
  - "80" # plain
  - '443'
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, annotations: {own: x}} # flow
data:
  k: v # the value
"""
FIRST = "a = rl['items'][1]['metadata'].setdefault('annotations', {})\n"
NEW = "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'new', 'annotations': %s}}"


def add(annotations: str = "{}", namespace: str = "") -> str:
    """Return a change that adds a resource."""
    place = f"new['metadata']['namespace'] = {namespace!r}\n" if namespace else ""
    return f"new = {NEW % annotations}\n{place}rl['items'].append(new)"


def package(pipeline: str) -> dict[str, str]:
    return {
        "Kptfile": f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n{pipeline}",
        "web.yaml": WEB,
        "other.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web # as the Deployment\n",
    }


def by_kpt(folder: Path, files: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
    """Return whether kpt renders a package, and its files afterwards."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    assert KPT is not None
    command = [KPT, "fn", "render", str(folder), "--allow-exec"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    mapping = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return process.returncode == 0, mapping


def comparable(files: Mapping[str, str]) -> dict[str, tuple[Any, list[str]]]:
    """Return the documents and comments of each file. Their layout is not compared, because kpt has its own layout."""
    return {
        path: ([*yaml.safe_load_all(text)], sorted(re.findall(r"(?:^|\s)(#.*)", text))) for path, text in files.items()
    }


def both(tmp_path: Path, files: Mapping[str, str]) -> tuple[RenderResult, bool, dict[str, str]]:
    ours = render_pipelines(build_tree(files), functions((f"{tmp_path}/*",)), profile="compat")
    return ours, *by_kpt(tmp_path / "package", files)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        pytest.param("", id="nothing"),
        pytest.param("rl['items'].reverse()", id="the-order-of-items"),
        pytest.param("rl['items'][1]['spec']['replicas'] = 5", id="a-value"),
        pytest.param("rl['items'][1]['spec']['args'] = ['80', '8080', '443']", id="a-list"),
        pytest.param("rl['items'][1]['metadata']['name'] = 'shop'", id="a-name"),
        pytest.param("rl['items'][1]['spec'] = {'new': 1, 'args': ['80'], 'replicas': 2}", id="the-order-of-keys"),
        pytest.param("del rl['items'][2]", id="one-resource-less"),
        pytest.param("rl['items'] = rl['items'][:1]", id="files-without-resources"),
        pytest.param(add(), id="a-new-resource"),
        pytest.param(add(namespace="ns"), id="a-new-resource-in-a-namespace"),
        pytest.param(add("{'config.kubernetes.io/path': 'a/b.yaml'}"), id="a-new-resource-with-a-legacy-path"),
        pytest.param(add("{'internal.config.kubernetes.io/path': 'a/b.yaml'}"), id="a-new-resource-with-a-path"),
        pytest.param(
            add("{'config.kubernetes.io/path': 'web.yaml', 'config.kubernetes.io/index': '2'}"),
            id="a-new-resource-behind-others",
        ),
        pytest.param(FIRST + "a['internal.config.kubernetes.io/path'] = 'moved.yaml'", id="a-moved-resource"),
        pytest.param(FIRST + "a['config.kubernetes.io/path'] = 'moved.yaml'", id="a-move-by-the-legacy-annotation"),
        pytest.param(FIRST + "a['config.kubernetes.io/path'] = '../x.yaml'", id="a-move-out-of-the-package"),
        pytest.param(FIRST + "a['config.kubernetes.io/index'] = '1'", id="two-in-one-place"),
        pytest.param(
            add("{'config.kubernetes.io/path': 'web.yaml', 'config.kubernetes.io/index': '0'}"), id="in-the-way"
        ),
        pytest.param("rl['items'].append({'a': 1})", id="no-resource"),
        pytest.param("rl['results'] = [{'message': 'm', 'severity': 'error'}]", id="an-error-and-exit-0"),
        pytest.param("rl['results'] = {'items': [{'message': 'm'}]}", id="results-in-a-mapping"),
        pytest.param("sys.exit(3)", id="an-exit-code"),
        pytest.param("print('hello'); sys.exit()", id="prose"),
    ],
)
def test_what_a_program_changes(tmp_path: Path, change: str) -> None:
    path = program(tmp_path / "fn", editing(change))

    ours, works, files = both(tmp_path, package(f"  mutators:\n  - exec: {path}\n"))

    assert (ours.failure is None) is works, ours.failure
    assert comparable(read_texts(ours.files)) == comparable(files)


SET = editing("for one in rl['items']:\n    one['metadata'].setdefault('annotations', {})['by'] = sys.argv[1]")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param("  mutators:\n  - exec: {} a\n    selectors: [{{kind: Deployment}}]\n", id="a-selector"),
        pytest.param("  mutators:\n  - exec: {} a\n    exclude: [{{kind: Kptfile}}]\n", id="an-exclusion"),
        pytest.param("  mutators:\n  - exec: {0} 'a b'\n  - exec: {0} c\n", id="one-after-the-other"),
        pytest.param("  validators:\n  - exec: {} a\n", id="a-validator"),
    ],
)
def test_what_a_program_sees(tmp_path: Path, pipeline: str) -> None:
    path = program(tmp_path / "fn", SET)

    ours, works, files = both(tmp_path, package(pipeline.format(path)))

    assert works
    assert comparable(read_texts(ours.files)) == comparable(files)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(add("{'config.kubernetes.io/path': '../x.yaml'}"), id="out-of-the-package"),
        pytest.param("rl['items'].append({'a': 1})", id="no-resource"),
        pytest.param("rl['items'] = []", id="nothing"),
    ],
)
def test_what_a_validator_returns(tmp_path: Path, change: str) -> None:
    path = program(tmp_path / "fn", editing(change))

    ours, works, files = both(tmp_path, package(f"  validators:\n  - exec: {path}\n"))

    assert (ours.failure is None) is works
    assert comparable(read_texts(ours.files)) == comparable(files)


def test_a_kustomization(tmp_path: Path) -> None:
    path = program(tmp_path / "fn", editing("rl['items'].reverse()"))
    kustomization = {"kustomization.yaml": "# what belongs together\nresources: [web.yaml]\n"}

    ours, works, files = both(tmp_path, package(f"  mutators:\n  - exec: {path}\n") | kustomization)

    assert works
    assert ours.failure is None
    assert comparable(read_texts(ours.files)) == comparable(files)


def test_the_order_of_new_keys(tmp_path: Path) -> None:
    source = editing("rl['items'][1]['spec'] |= {'z': 1, 'b': 2, 'y': {'d': 1, 'c': 2}}").replace(
        "sys.stdout)", "sys.stdout, sort_keys=False)"
    )
    path = program(tmp_path / "fn", source)

    ours, _, files = both(tmp_path, package(f"  mutators:\n  - exec: {path}\n"))
    specs = [next(yaml.safe_load_all(text["web.yaml"]))["spec"] for text in (read_texts(ours.files), files)]

    assert str(specs[0]) == str(specs[1])


@pytest.mark.slow
def test_subpackages(tmp_path: Path) -> None:
    path = program(tmp_path / "fn", SET)
    inner = {f"sub/{name}": text for name, text in package(f"  mutators:\n  - exec: {path} inner\n").items()}
    new = program(tmp_path / "add", editing(add()))

    ours, works, files = both(tmp_path, package(f"  mutators:\n  - exec: {new}\n") | inner)

    assert works
    assert comparable(read_texts(ours.files)) == comparable(files)
