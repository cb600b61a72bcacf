"""An unexpected exception in a review command, a function call or an approval stays with its draft or package."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.api.kpt import FunctionSpec
from reconciler.krm.findings import select_errors
from reconciler.packages.functions.registry import FunctionMatch, FunctionRegistry, FunctionUnavailable
from reconciler.reconcile import review_actions as approvals
from reconciler.reconcile.review_actions import ReviewVerb
from reconciler.review import actions as acting
from tests.support.command_line import run_in
from tests.support.world import World, package, small_world, variant

ERRORS = (MemoryError, RecursionError, ValueError, OSError)
IMAGE = "ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0"


def _raising(original: Callable[..., Any], error: type[Exception], applies: Callable[..., bool]) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **options: Any) -> Any:
        if applies(*arguments):
            raise error("injected")
        return original(*arguments, **options)

    return wrapper


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("verb", ["propose", "approve", "reject"])
@pytest.mark.parametrize("error", ERRORS)
def test_a_draft_that_fails_in_a_review_command_leaves_the_others(
    verb: ReviewVerb, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    world.sync()
    if verb == "reject":
        world.run_review_action("propose")
    is_berlin = lambda _, task, *__: task.target.name == "berlin"  # noqa: E731
    monkeypatch.setattr(acting, "_prepare", _raising(acting._prepare, error, is_berlin))

    with capture_logs() as events:
        acted = {result.repository: result for result in world.run_review_action(verb, should_approve_unproposed=True)}

    assert {name: result.outcome for name, result in acted.items()} == {"berlin": "failed", "lisbon": "done"}
    (event,) = (event for event in events if event["event"] == "internal_error")
    assert event["reference"] in acted["berlin"].message
    assert "injected" in event["traceback"]


def _is_about_berlin(*arguments: Any) -> bool:
    return any(getattr(getattr(argument, "target", argument), "name", "") == "berlin" for argument in arguments)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "target",
    [
        "reconciler.review.drafts._read_labels",
        "reconciler.review.drafts.DraftReview._check_reset",
        "reconciler.review.actions._list_tasks",
    ],
)
@pytest.mark.parametrize("error", ERRORS)
def test_a_target_that_cannot_be_opened_for_review_leaves_the_others(
    target: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    world.sync()
    monkeypatch.setattr(target, _raising(pkgutil.resolve_name(target), error, _is_about_berlin))

    with capture_logs() as events:
        acted = {
            result.repository: result for result in world.run_review_action("approve", should_approve_unproposed=True)
        }

    assert {name: result.outcome for name, result in acted.items()} == {"berlin": "failed", "lisbon": "done"}
    (event,) = (event for event in events if event["event"] == "internal_error")
    assert event["reference"] in acted["berlin"].message


VALIDATION = {
    "a-target": "reconciler.inspect.validate._check_target",
    "settings": "reconciler.inspect.validate.check_settings_repositories",
    "conflicts": "reconciler.bootstrap.fleet_services.FleetServices.find_target_conflicts",
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("target", VALIDATION.values(), ids=VALIDATION)
@pytest.mark.parametrize("error", ERRORS)
def test_a_check_that_fails_in_validate_leaves_the_other_findings(
    target: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    world.write({"bad.yaml": variant("bad", "nowhere", "metrics")})
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    usual = run_in(world.folder, {}, "validate", world.source, *options)
    original = pkgutil.resolve_name(target)
    applies = _is_about_berlin if target.endswith("_target") else lambda *_: True
    monkeypatch.setattr(target, _raising(original, error, applies))

    ended = run_in(world.folder, {}, "validate", world.source, *options)

    lines = ended.stdout.splitlines()
    assert ended.returncode == 1, ended.stderr
    assert sum("InternalError" in line for line in lines) == 1
    assert set(usual.stdout.splitlines()) <= set(lines)


@pytest.mark.parametrize("error", ERRORS)
def test_releases_that_cannot_be_read_leave_the_findings_about_rendered_packages(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    world.write({"bad.yaml": variant("bad", "nowhere", "metrics")})
    target = "reconciler.controllers.clusters.inventory.read_cluster_versions"
    monkeypatch.setattr(target, _raising(pkgutil.resolve_name(target), error, lambda *_: True))

    ended = run_in(
        world.folder, {}, "validate", "--rendered", world.source, "--fleet", str(world.fleet),
        "--cache", str(world.folder / "cache"),
    )  # fmt: skip

    assert ended.returncode == 1, ended.stderr
    assert "InternalError: the releases of clusters" in ended.stdout
    assert "bad.yaml" in ended.stdout


@pytest.mark.parametrize("error", ERRORS)
def test_a_function_call_that_fails_is_the_error_of_its_package_and_names_the_function(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    files = package("metrics")
    files["Kptfile"] += f"pipeline:\n  mutators:\n    - image: {IMAGE}\n      configMap:\n        tier: web\n"
    world.release("metrics", "v9", files)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v9")})
    find = FunctionRegistry.find

    def find_raising(self: FunctionRegistry, spec: FunctionSpec) -> FunctionMatch | FunctionUnavailable | None:
        function_match = find(self, spec)
        return (
            replace(function_match, function=_raising(function_match.function, error, lambda *_: True))
            if isinstance(function_match, FunctionMatch)
            else function_match
        )

    monkeypatch.setattr(FunctionRegistry, "find", find_raising)

    report = world.sync()

    assert report.outcomes["lisbon/gateway"] == "draft"
    (finding,) = select_errors(report.report.plan.list_findings())
    assert finding.code == "InternalError"
    assert finding.message.startswith(
        f'package berlin/metrics: the function "{IMAGE}" of the root package: an unexpected'
    )


@pytest.mark.parametrize("error", ERRORS)
def test_an_approval_that_fails_leaves_everything_unpublished_and_is_reported(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_world(tmp_path / "world")
    world = World(tmp_path / "world", approvals={"by_annotation": True})
    is_berlin = lambda plan: plan.target.name == "berlin"  # noqa: E731
    monkeypatch.setattr(
        approvals, "find_approvable_packages", _raising(approvals.find_approvable_packages, error, is_berlin)
    )

    report = world.sync().report

    assert {finding.code for finding in select_errors(report.plan.list_findings())} == {"InternalError"}
    assert {name for name, written_plan in report.written.items() if written_plan.draft_heads} == {"berlin", "lisbon"}
