"""The page about JSON output lists all kinds, and its examples equal the output of the commands for the demo.

The comment `<!-- example: arguments -->` above a block contains the arguments of the command. The commands run in the
order of the page. `--rewrite-expected` replaces the content of these blocks.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from reconciler.output.envelope import build_result_schema
from reconciler.output.schemas.results import RESULTS
from tests.support.command_line import CommandResult, run_in

PROJECT = Path(__file__).resolve().parents[2]
PAGE = PROJECT / "docs" / "reference" / "json-output.md"
MODELS = {str(model.model_fields["kind"].default): model for model in RESULTS}
_EXAMPLE = re.compile(r"<!-- example: (?P<arguments>[^\n]+) -->\n```json\n(?P<content>.*?)```", re.DOTALL)
_ID = re.compile(r"\b[0-9a-f]{12,64}\b")
_TIMES = {
    "startedAt": "2026-11-23T05:10:50Z", "completedAt": "2026-11-23T05:10:50Z", "durationSeconds": 0.14
}  # fmt: skip
_FIRST_ID = "0123456789abcdef" * 4
_MAX_CHARACTERS = 100
_SETTINGS = "config: {url: config}\nfleet: {url: fleet.git}\ncache: .cache\nreview: {clock: commits}\n"
_MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {zone: %s}\n"
_OLD_FLEET = {
    "berlin/web/web.yaml": _MANIFEST % "eu", "ohio/web/web.yaml": _MANIFEST % "us", "ohio/db/Chart.yaml": "name: db\n",
}  # fmt: skip
_ENVIRONMENT = {
    "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.com", "GIT_AUTHOR_DATE": "1767312000 +0000",
    "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.com", "GIT_COMMITTER_DATE": "1767312000 +0000",
}  # fmt: skip


class Demo:
    """The demo, with a history of its config. Before some commands, the demo changes."""

    def __init__(self, folder: Path) -> None:
        result = run_in(folder, _ENVIRONMENT, "demo")
        assert result.returncode == 0, result.stderr
        self.folder = folder / "demo"
        (self.folder / "reconciler.yaml").write_text(_SETTINGS)
        self._git("init", "--quiet", "--initial-branch=main")
        self._commit("create the platform")
        self.run("sync")

    def run(self, *arguments: str) -> CommandResult:
        return run_in(self.folder, _ENVIRONMENT, *arguments)

    def print_example(self, arguments: str) -> dict[str, Any]:
        """Return the JSON output of a command, after the changes that the command requires."""
        match arguments.split():
            case ["impact", *_]:
                self.run("approve", "--all", "--propose")
                self.run("sync")
                regions = self.folder / "config" / "regions.yaml"
                regions.write_text(regions.read_text().replace("auth.eu-west", "login.eu-west"))
                self._commit("use the new login service")
            case ["why", *_]:
                self.run("approve", "lisbon", "--propose")
            case ["adopt", source, *_]:
                for path, text in _OLD_FLEET.items():
                    (self.folder / source / path).parent.mkdir(parents=True)
                    (self.folder / source / path).write_text(text)
        result = self.run(*shlex.split(arguments))
        assert result.returncode in (0, 1, 2), result.stderr
        data: dict[str, Any] = json.loads(result.stdout)
        return data

    def _commit(self, message: str) -> None:
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)

    def _git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder / "config", env=_ENVIRONMENT, check=True)


def shorten(value: Any, folder: str) -> Any:
    """Return the value with one item per list, one item per type in `items`, short texts, and fixed IDs and times."""
    match value:
        case str():
            text = _ID.sub(lambda found: _FIRST_ID[: len(found[0])], value.replace(folder, "/demo"))
            return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
        case list():
            ranked = sorted(value, key=lambda item: isinstance(item, dict) and "content" not in item)
            first = {item.get("type") if isinstance(item, dict) else None: item for item in reversed(ranked)}
            return [shorten(item, folder) for item in reversed(first.values())]
        case dict():
            data = {name: shorten(item, folder) for name, item in value.items()}
            return data | {"lastPass": data["lastPass"] | _TIMES} if "lastPass" in data else data
        case _:
            return value


def format_json(value: Any, indent: int = 0) -> str:
    """Return JSON text. Lists and objects that fit on one line are on one line."""
    text = json.dumps(value, ensure_ascii=False)
    if indent and (len(text) + indent <= _MAX_CHARACTERS or not isinstance(value, dict | list)):
        return text
    inner, indented = " " * (indent + 2), indent + 2
    if isinstance(value, list):
        lines = [f"{inner}{format_json(item, indented)}" for item in value]
        return "\n".join(["[", ",\n".join(lines), f"{' ' * indent}]"])
    lines = [f"{inner}{json.dumps(name)}: {format_json(item, indented)}" for name, item in value.items()]
    return "\n".join(["{", ",\n".join(lines), f"{' ' * indent}}}"])


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, dict[str, Any]]]:
    """The folder of the demo, and the complete output of each example by its arguments."""
    demo = Demo(tmp_path_factory.mktemp("json"))
    arguments = [example["arguments"] for example in _EXAMPLE.finditer(PAGE.read_text())]
    return str(demo.folder), {text: demo.print_example(text) for text in arguments}


def test_the_page_has_an_example_of_each_kind(outputs: tuple[str, dict[str, dict[str, Any]]]) -> None:
    assert {data["kind"] for data in outputs[1].values()} == MODELS.keys()


def test_examples_equal_the_output_for_the_demo(
    outputs: tuple[str, dict[str, dict[str, Any]]], should_rewrite: bool
) -> None:
    folder, data = outputs

    def replace_content(example: re.Match[str]) -> str:
        content = format_json(shorten(data[example["arguments"]], folder))
        return f"<!-- example: {example['arguments']} -->\n```json\n{content}\n```"

    text = PAGE.read_text()
    expected = _EXAMPLE.sub(replace_content, text)
    if should_rewrite:
        PAGE.write_text(expected)

    assert text == expected
    assert all(json.loads(example["content"]) for example in _EXAMPLE.finditer(text))


def test_outputs_match_their_schemas(outputs: tuple[str, dict[str, dict[str, Any]]]) -> None:
    errors = [
        f"{arguments}: {error.instance_path}: {error.message}"
        for arguments, data in outputs[1].items()
        for error in Draft202012Validator(build_result_schema(MODELS[data["kind"]])).iter_errors(data)
    ]

    assert errors == []


def test_every_envelope_has_the_same_fields(outputs: tuple[str, dict[str, dict[str, Any]]]) -> None:
    fields = ["apiVersion", "kind", "metadata", "items", "findings", "summary", "next"]

    assert [arguments for arguments, data in outputs[1].items() if list(data) != fields] == []
    assert {(data["apiVersion"], data["next"]) for data in outputs[1].values()} == {("reconciler.dev/v1", None)}
