"""Images run if the settings list them, with engine options that isolate them.

These tests run no engine: a fake program records the arguments and uses the wire format. The effect of the arguments
on a real engine is not tested.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.runners.containers import PullPolicy, resolve_image_reference
from tests.runners.programs import BOUNDS, PREFIX, call, editing, engine, functions, put_image
from tests.unit.packages.builders import format_items, list_messages

ONE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a # the name\ndata:\n  k: v # the value\n"
IMAGE = "example.com/fns/edit:v1"
EDIT = editing("rl['items'][0]['data']['k'] = 'edited'")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with an engine that has no images."""
    monkeypatch.setenv("PATH", str(engine(tmp_path)))
    return tmp_path


def calls(machine: Path) -> list[list[str]]:
    """Return the arguments of the engine."""
    return [json.loads(line) for line in (machine / "calls").read_text().splitlines()]


def test_an_image_edits_resources(machine: Path) -> None:
    put_image(machine, IMAGE, EDIT)

    output = call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE)

    assert format_items(output.items) == ONE.replace("k: v", "k: edited")


def test_permissions_of_a_container(machine: Path) -> None:
    put_image(machine, IMAGE, EDIT)
    call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE)

    inspect, run = calls(machine)
    name = run.index("--name")
    assert inspect == ["image", "inspect", "--format", "{{.Id}}", IMAGE]
    assert run[name + 1].startswith("reconciler-")
    assert run[name + 2 :][0].startswith("sha256:"), "what was looked at is what runs"
    assert " ".join(run[:name]) == (
        "run --rm -i --pull never --network none --user nobody --security-opt no-new-privileges --cap-drop ALL"
        " --read-only --tmpfs /tmp --memory 536870912b --memory-swap 536870912b --pids-limit 256"
    )


@pytest.mark.parametrize(
    ("pull", "places", "text"),
    [
        pytest.param("IfNotPresent", ["images"], "inspect", id="it-is-here"),
        pytest.param("IfNotPresent", ["registry"], "inspect pull inspect", id="it-is-there"),
        pytest.param("Always", ["images", "registry"], "pull inspect", id="always"),
        pytest.param("Never", ["images"], "inspect", id="never"),
    ],
)
def test_pulling(machine: Path, pull: PullPolicy, places: list[str], text: str) -> None:
    for place in places:
        put_image(machine, IMAGE, EDIT, place)
    provider = functions(containers=(IMAGE,), pull=pull)

    provider.find(FunctionSpec(image=IMAGE))
    provider.find(FunctionSpec(image=IMAGE))

    assert " ".join("pull" if "pull" in item else item[1] for item in calls(machine)) == text


@pytest.mark.parametrize(
    ("pull", "places", "words"),
    [
        pytest.param("IfNotPresent", [], "failed: manifest unknown", id="it-is-nowhere"),
        pytest.param("Always", ["images"], "failed: manifest unknown", id="always-and-it-is-gone"),
        pytest.param("Never", ["registry"], "`functions.pull` is Never", id="never-and-it-is-not-here"),
    ],
)
def test_an_image_that_cannot_be_had(machine: Path, pull: PullPolicy, places: list[str], words: str) -> None:
    for place in places:
        put_image(machine, IMAGE, EDIT, place)

    with pytest.raises(InterruptedFunctionError, match=words):
        functions(containers=(IMAGE,), pull=pull).find(FunctionSpec(image=IMAGE))


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        pytest.param({"image": "set-labels"}, f"{PREFIX}/set-labels:latest", id="bare"),
        pytest.param({"image": "set-labels:v1"}, f"{PREFIX}/set-labels:v1", id="with-a-tag"),
        pytest.param({"image": "a.b:5000/x"}, "a.b:5000/x:latest", id="a-port-is-no-tag"),
        pytest.param({"image": "a/x:v1", "tag": "v2"}, "a/x:v2", id="the-field-overrules"),
        pytest.param({"image": "a/x@sha256:" + "0" * 64}, "a/x@sha256:" + "0" * 64, id="a-digest"),
        pytest.param({"image": "a/x@sha256:" + "0" * 64, "tag": "v2"}, "a/x:v2", id="the-field-overrules-a-digest"),
        pytest.param({"image": "a/x", "tag": "~1.2"}, None, id="a-range"),
        pytest.param({"image": "a/x", "tag": "v1 --privileged"}, None, id="more-than-a-tag"),
    ],
)
def test_full_references(spec: dict[str, str], reference: str | None) -> None:
    assert resolve_image_reference(FunctionSpec(**spec), PREFIX) == reference


@pytest.mark.parametrize(
    ("patterns", "spec", "reason"),
    [
        pytest.param(
            (),
            {"image": "a/x:v1"},
            "the image a/x:v1 is not allowed; add it to the setting `functions.containers`",
            id="nothing-listed",
        ),
        pytest.param(
            ("a/x:v2",),
            {"image": "a/x:v1"},
            "the image a/x:v1 is not allowed; add it to the setting `functions.containers`",
            id="another-tag",
        ),
        pytest.param(
            ("a/x",),
            {"image": "a/x"},
            "the image a/x:latest is not allowed; add it to the setting `functions.containers`",
            id="no-tag-is-latest",
        ),
        pytest.param(
            ("a/*",),
            {"image": "a/x", "tag": ">=1"},
            "is a version range, which is not supported; set an exact tag",
            id="a-range",
        ),
        pytest.param(("a/x:*",), {"image": "a/x:v1"}, "", id="any-tag"),
        pytest.param((f"{PREFIX}/*",), {"image": "render"}, "", id="the-prefix"),
    ],
)
def test_only_listed_images_run(machine: Path, patterns: tuple[str, ...], spec: dict[str, str], reason: str) -> None:
    for image in ("a/x:v1", f"{PREFIX}/render:latest"):
        put_image(machine, image, EDIT)

    result = functions(containers=patterns).find(FunctionSpec(**spec))

    assert reason in result.reason if isinstance(result, FunctionUnavailable) else not reason


@pytest.mark.parametrize(
    ("image", "source", "theirs"),
    [
        pytest.param("set-labels:v0.2", EDIT, False, id="of-the-catalog"),
        pytest.param("gcr.io/kpt-fn/set-labels:v0.2", EDIT, False, id="of-the-catalog's-old-place"),
        pytest.param("example.com/set-labels:v0.2", EDIT, True, id="local-image"),
        pytest.param("set-labels:v9.9", EDIT, True, id="a-version-we-would-have-to-guess"),
    ],
)
def test_ours_or_theirs(machine: Path, image: str, source: str, *, theirs: bool) -> None:
    put_image(machine, image if "/" in image else f"{PREFIX}/{image}", source)

    provider, unlisted = functions(containers=("*",)), functions()

    spec = FunctionSpec(image=image)
    result, other = provider.find(spec), unlisted.find(spec)
    assert isinstance(result, FunctionMatch)
    assert bool(result.identity) is theirs
    assert isinstance(other, FunctionMatch)
    assert not other.identity


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("source", "error"),
    [
        pytest.param("import sys; sys.exit(7)", "the function ended with exit code 7", id="fails"),
        pytest.param("import sys; sys.exit(127)", "the function ended with exit code 127", id="no-such-entry-point"),
        pytest.param("import sys; sys.exit(139)", "the function ended with exit code 139", id="crashes"),
        pytest.param("while True: print('x' * 10**6)", "the output of the function must not be larger", id="floods"),
    ],
)
def test_failures_of_the_function(machine: Path, source: str, error: str) -> None:
    put_image(machine, IMAGE, source)

    output = call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE)

    assert output.has_failed
    assert error in output.error


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("import time; time.sleep(60)", "took longer than 0.5 seconds", id="time-out"),
        pytest.param("import sys; sys.exit(137)", "was killed", id="kill"),
        pytest.param(
            "import sys; sys.stderr.write('no space'); sys.exit(125)", "could not run .* no space", id="engine"
        ),
    ],
)
def test_failures_of_the_environment(machine: Path, source: str, words: str) -> None:
    put_image(machine, IMAGE, source)

    with pytest.raises(InterruptedFunctionError, match=words):
        call(functions(containers=(IMAGE,), bounds=replace(BOUNDS, seconds=0.5)).find(FunctionSpec(image=IMAGE)), ONE)


def test_a_container_ends_with_a_call_that_took_too_long(machine: Path) -> None:
    put_image(machine, IMAGE, "import time; time.sleep(60)")

    with pytest.raises(InterruptedFunctionError):
        call(functions(containers=(IMAGE,), bounds=replace(BOUNDS, seconds=1)).find(FunctionSpec(image=IMAGE)), ONE)

    assert_removed(machine)


def test_a_container_ends_after_too_much_output(machine: Path) -> None:
    put_image(machine, IMAGE, "while True: print('x' * 10**6)")

    assert call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE).has_failed

    assert_removed(machine)


def assert_removed(machine: Path) -> None:
    """Check that the engine received the command to remove the container that it ran."""
    _, run, remove = calls(machine)
    assert remove == ["rm", "--force", run[run.index("--name") + 1]]


def test_an_engine_that_is_down_changes_nothing(machine: Path) -> None:
    put_image(machine, IMAGE, EDIT)
    provider = functions(containers=(IMAGE,))
    assert isinstance(provider.find(FunctionSpec(image=IMAGE)), FunctionMatch)
    (machine / "down").touch()
    provider.refresh()

    assert provider.identity(f"function image {IMAGE}") == "", "the identity is unknown"
    with pytest.raises(InterruptedFunctionError, match="Cannot connect to the Docker daemon"):
        provider.find(FunctionSpec(image=IMAGE))


def test_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InterruptedFunctionError, match="requires podman or docker or nerdctl on the PATH"):
        functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE))


def test_podman_comes_first_and_keeps_its_proxies_to_itself(machine: Path) -> None:
    engine(machine, "podman")
    put_image(machine, IMAGE, EDIT)

    call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE)

    assert "--http-proxy=false" in calls(machine)[-1]


def test_a_moved_tag_is_another_image(machine: Path) -> None:
    put_image(machine, IMAGE, EDIT)
    provider, name = functions(containers=(IMAGE,)), f"function image {IMAGE}"
    first = provider.identity(name)
    put_image(machine, IMAGE, EDIT + "# changed")

    assert provider.identity(name) == first, "a pass looks once"
    provider.refresh()
    assert provider.identity(name) not in (first, "", "absent")


def test_results_are_those_of_the_function(machine: Path) -> None:
    put_image(machine, IMAGE, editing("rl['results'] = {'items': [{'message': 'm', 'severity': 'warning'}]}"))

    output = call(functions(containers=(IMAGE,)).find(FunctionSpec(image=IMAGE)), ONE)

    assert list_messages(output) == [("warning", "m")]
