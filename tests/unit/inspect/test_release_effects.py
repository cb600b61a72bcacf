"""Tests of the cached effects of HelmReleases: one process for each draft and config."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.inspect.command_process import CommandOutput, ReconcilerCommand
from reconciler.inspect.release_effects import ReleaseEffectsReader
from reconciler.output.fleet.model import DraftMember

MEMBER = DraftMember("lisbon", "web", "drafts/lisbon", "a" * 40, "b" * 40, "Draft")
EFFECT = {"release": "shop/web", "summary": ["Deployment shop/web: replicas 2 → 3"]}


def create_output(head: str = MEMBER.head, **content: object) -> CommandOutput:
    package = {"package": "web", "content": content}
    items = [{"branch": MEMBER.branch, "head": head, "packages": [package]}]
    return CommandOutput(json.dumps({"items": items, "findings": []}))


class Commands:
    """Records the arguments of commands, and returns these outputs in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *outputs: CommandOutput) -> None:
        self.lines: list[tuple[str, ...]] = []
        self._outputs = iter(outputs)
        commands = self

        def run(command: ReconcilerCommand, arguments: Sequence[str], _seconds: float, *_more: Any) -> CommandOutput:
            commands.lines.append((command.name, *command.options, *arguments))
            return next(commands._outputs)

        monkeypatch.setattr(ReconcilerCommand, "run", run)


def test_effects_are_read_once_for_each_draft_and_config(monkeypatch: pytest.MonkeyPatch) -> None:
    output = create_output(releaseEffects=[EFFECT])
    commands = Commands(monkeypatch, output, output, output)
    reader = ReleaseEffectsReader(("--config", "platform"))

    first = reader.read(MEMBER, "c1")

    assert first.effects == (EFFECT,)
    assert first.command == "reconciler show --effects --config platform lisbon/web"
    assert commands.lines == [("show", "--effects", "--diff-lines", "0", "--config", "platform", "lisbon/web")]
    assert reader.read(MEMBER, "c1") is first
    reader.read(MEMBER, "c2")
    reader.read(replace(MEMBER, published_head="d" * 40), "c1")
    assert len(commands.lines) == 3


def test_a_draft_without_effects(monkeypatch: pytest.MonkeyPatch) -> None:
    Commands(monkeypatch, create_output())
    effects = ReleaseEffectsReader(()).read(MEMBER, "c1")
    assert (effects.effects, effects.error) == ((), "")


@pytest.mark.parametrize(
    ("output", "error"),
    [
        pytest.param(CommandOutput(error="cannot be started"), "cannot be started", id="command"),
        pytest.param(create_output("e" * 40), "the draft has changed since the last pass", id="moved"),
        pytest.param(
            CommandOutput(json.dumps({"items": [], "findings": [{"message": "lisbon is gone"}]})), "lisbon is gone",
            id="target",
        ),
    ],
)  # fmt: skip
def test_errors_are_not_cached(monkeypatch: pytest.MonkeyPatch, output: CommandOutput, error: str) -> None:
    Commands(monkeypatch, output, create_output(releaseEffects=[EFFECT]))
    reader = ReleaseEffectsReader(())

    assert reader.read(MEMBER, "c1").error == error
    assert reader.read(MEMBER, "c1").effects == (EFFECT,)


def test_a_third_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each running command requests the effects of another draft, until there are two processes."""
    monkeypatch.setattr("reconciler.inspect.release_effects._WAIT_SECONDS", 0)
    reader = ReleaseEffectsReader(())
    errors: list[str] = []

    def run(_command: ReconcilerCommand, *_arguments: Any) -> CommandOutput:
        if not errors:
            errors.append(reader.read(MEMBER, "c1").error)
        return create_output(releaseEffects=[EFFECT])

    monkeypatch.setattr(ReconcilerCommand, "run", run)
    first = reader.read(MEMBER, "c1")

    assert first.effects == (EFFECT,)
    assert "too many effects are being computed; try again in a minute" in errors
