"""An unexpected exception at any port and at any stage of a pass stays within its scope.

Each case raises one exception in the work on the cluster `berlin`, on its package, file or object, and compares with
the same pass without the exception: the refs of all other clusters are equal, nothing of berlin is deleted, the result
is an error, and the next pass without the exception comes to the same content.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.cli.errors import exit_status_of
from reconciler.planning.decide.drafts import DraftTextWriter
from reconciler.reconcile.pass_inputs import FunctionIdentities
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.services import PassServices, PlanPublisher
from reconciler.settings import Settings
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.world import World, catalog, package, repository, variant

ERRORS = (MemoryError, RecursionError, ValueError, OSError)
STATUS = "refs/heads/reconciler/status"
PACKAGES = ("berlin-db", "berlin-web", "lisbon-web", "oslo-web")
REPOSITORIES = {"berlin": "./fleet.git", "lisbon": "./south.git", "oslo": "./fleet.git"}
Refs = Mapping[str, Mapping[str, str]]


@dataclass
class Fault:
    """Raises an error in place of a call, where the arguments are about its scope; None lets all calls pass."""

    applies: Callable[..., bool]
    error: type[Exception] | None = None
    raised: int = 0

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if self.error and self.applies(*arguments, **options):
                self.raised += 1
                raise self.error("injected")
            return function(*arguments, **options)

        return wrapper


class FaultyPort:
    """A port of which one method raises."""

    def __init__(self, port: Any, method: str, fault: Fault) -> None:
        self._port = port
        self._method = method
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._port, name)
        return self._fault.wrap(result) if name == self._method else result


def always(*_: Any, **__: Any) -> bool:
    return True


def on_berlin(position: int = 0) -> Callable[..., bool]:
    """Return whether the destination at a position of the arguments is berlin."""
    return lambda *arguments, **_: arguments[position].name == "berlin"


def in_fleet(mirror: Any, *_: Any, **__: Any) -> bool:
    return "fleet" in mirror.url


@dataclass(frozen=True)
class Boundary:
    """Where an exception is raised, and how far it may reach.

    Attributes:
        target: a function inside of a pass, by the module that looks it up; or a field of `PassServices`, or `port.method`.
        applies: whether the arguments of a call are about the scope.
        reach: `cluster` for berlin alone, `remote` for the clusters of its repository, `nothing` where all clusters get
            their drafts, `log` where in addition the result is complete, so that only the log shows the exception,
            `config` where no cluster can be decided on, so that nothing may change.
        passes_before: undisturbed passes of the same process. 0: only the first pass of a process reaches this stage.
    """

    target: str
    applies: Callable[..., bool] = always
    reach: str = "cluster"
    passes_before: int = 1


STAGES = {
    "parsing-a-config-file": Boundary(
        "reconciler.catalog.catalog._parse", lambda file, *_: b"name: berlin-web" in file.data
    ),
    "reading-the-objects-of-a-file": Boundary(
        "reconciler.catalog.catalog._read_object", lambda path, *_: path == "berlin-web.yaml"
    ),
    "reading-a-repository": Boundary(
        "reconciler.controllers.repositories.read_repository", lambda value: value.key.name == "berlin", passes_before=0
    ),
    "reading-a-package-variant": Boundary(
        "reconciler.controllers.package_variants.controller.process_variant",
        lambda value, *_: value.key.name == "berlin-web",
    ),
    "reading-a-state": Boundary(
        "reconciler.reconcile.remotes.repository.parse_state",
        lambda files: b"clusters/berlin" in files["destination.json"],
        passes_before=0,
    ),
    "comparing-with-the-last-pass": Boundary(
        "reconciler.reconcile.pass_cache.PassCache.find_plan", on_berlin(1), "nothing", passes_before=2
    ),
    "surveying-a-destination": Boundary("reconciler.reconcile.pass_context.prepare_target", on_berlin()),
    "deciding-on-a-destination": Boundary(
        "reconciler.planning.decide.target_plan.decide_packages", lambda *a: a[2].target.name == "berlin"
    ),
    "deciding-on-a-package": Boundary(
        "reconciler.planning.decide.package_decision._decide",
        lambda question, *_: question.variant.target.repository == "berlin",
    ),
    "reading-an-upstream-package": Boundary(
        "reconciler.reconcile.remotes.ports.TargetContents.read_source",
        lambda self, _: "fleet" in self._remote.mirror.url,
        "remote",
    ),
    "rendering-a-package": Boundary(
        "reconciler.planning.render.renderer.render_package", lambda variant, *_: variant.target.repository == "berlin"
    ),
    "describing-a-draft": Boundary(
        "reconciler.bootstrap.pass_services.format_draft_message",
        lambda draft, *_: draft.variant.target.repository == "berlin",
    ),
    "planning-a-destination": Boundary(
        "reconciler.reconcile.pass_context.plan_target", lambda decided, _: decided.target.name == "berlin"
    ),
    "finding-missing-tags": Boundary("reconciler.reconcile.pass_context.find_missing_tags", on_berlin()),
    "writing-the-changes-of-a-package": Boundary("reconciler.reconcile.commits._list_package_changes", on_berlin(1)),
    "writing-a-state": Boundary(
        "reconciler.reconcile.commits._with_heads", lambda plan, _: plan.target.name == "berlin"
    ),
    "opening-a-mirror": Boundary(
        "reconciler.git.mirror_folder.MirrorFolder.prepare",
        lambda self: "fleet" in str(self.path),
        "remote",
        passes_before=0,
    ),
    "fetching-a-remote": Boundary("reconciler.git.mirror.Mirror.fetch", in_fleet, "remote"),
    "reading-ahead": Boundary(
        "reconciler.reconcile.remotes.repository.Remote.prefetch_folder",
        lambda self, *_: "fleet" in self.mirror.url,
        "log",
        passes_before=0,
    ),
    "writing-to-a-mirror": Boundary("reconciler.git.mirror.Mirror.write_commits", in_fleet, "remote"),
    "pushing-to-a-remote": Boundary("reconciler.git.mirror.Mirror.push", in_fleet, "remote"),
    "maintaining-a-mirror": Boundary("reconciler.git.mirror.Mirror.maintain", in_fleet, "nothing"),
    "keeping-the-result-of-a-destination": Boundary(
        "reconciler.reconcile.pass_context.create_checkpoint",
        lambda decided, *_: decided.target.name == "berlin",
        "nothing",
    ),
    "writing-the-status-of-an-object": Boundary(
        "reconciler.output.status.status_branch.build_object_file",
        lambda status, *_: status.key.name == "berlin-web",
        "nothing",
    ),
    "collecting-the-status-of-an-object": Boundary(
        "reconciler.output.status.target_statuses._build_outcome_status",
        lambda outcome, _: outcome.variant.owner.key.name == "berlin-web",
        "nothing",
    ),
    "writing-the-status": Boundary("reconciler.reconcile.publishers.PushPublisher._write_status", always, "nothing"),
    "parsing-package-variants-at-all": Boundary(
        "reconciler.controllers.package_variants.controller.stall_cycles", always, "config"
    ),
}

PORTS = {
    **{
        name: Boundary(name, reach="config")
        for name in (
            "read_catalog",
            "list_targets",
            "list_urls",
            "run_controllers",
            "create_renderer",
            "create_tag_policy",
            "create_text_writer",
            "clock",
            "source.read",
        )
    },
    "preload": Boundary("preload", reach="nothing"),
    "find_rival_claims": Boundary("find_rival_claims", reach="nothing"),
    "find_target_conflicts": Boundary("find_target_conflicts", reach="config"),
    "report_progress": Boundary("report_progress", lambda stage, *_: stage == "planning", "config"),
    "writer.write_draft_texts": Boundary(
        "writer.write_draft_texts", lambda draft, _: draft.variant.target.repository == "berlin"
    ),
    "functions.refresh": Boundary("functions.refresh", reach="config"),
    "functions.digest": Boundary("functions.digest", reach="config"),
    "config_proposals.digest_heads": Boundary("config_proposals.digest_heads", reach="config"),
    "config_proposals.plan": Boundary("config_proposals.plan", reach="nothing"),
    "publisher.publish": Boundary("publisher.publish", lambda remote, _: "fleet" in remote.mirror.url, "remote"),
    "publisher.push_tags": Boundary(
        "publisher.push_tags", lambda remote, _: "fleet" in remote.mirror.url, "remote", passes_before=0
    ),
    "publisher.update_pull_requests": Boundary("publisher.update_pull_requests", reach="nothing"),
    "publisher.push_config_proposal": Boundary("publisher.push_config_proposal", reach="nothing"),
    "publisher.push_status": Boundary("publisher.push_status", reach="nothing"),
    "publisher.store_publication_times": Boundary("publisher.store_publication_times", reach="nothing"),
    "publisher.store_known_heads": Boundary("publisher.store_known_heads", reach="nothing"),
    "draft_times.update": Boundary("draft_times.update", reach="nothing"),
    "input_verifier.refresh": Boundary("input_verifier.refresh", reach="config"),
    "input_verifier.store": Boundary("input_verifier.store", reach="nothing"),
    # berlin is the only cluster with the package db
    "sources.render": Boundary("sources.render", lambda upstream, _: upstream.package == "db"),
    "artifacts.digest": Boundary("artifacts.digest", reach="config"),
}
# Ports and settings of `PassServices` that this pass does not call, with the reason.
NOT_CALLED = {
    "find_claimed_targets": "only called for conflicting definitions; find_rival_claims raises at the same place",
    "list_requested_variants": "only after a lost state; test_lost_state_of_several_sources.py raises exceptions in it",
    "read_config_commit": "only a review calls it",
    "find_recorded_file": "only called for conflicting definitions; find_rival_claims raises at the same place",
    "lint": "only `validate` calls it",
    "read_cluster_versions": "only `validate` calls it",
    "list_generated_kinds": "only `schema` calls it",
    "list_settings_urls": "only `validate` calls it",
    "find_upstream_urls": "only `why` and `verify` call it",
    "executor": "tests/executors raise exceptions in workers",
    "pull_requests": "not called without a forge; publisher.update_pull_requests represents it",
    "find_locked_tree": "only the adoption of a package calls it",
    "publication_times": "only rollouts and approvals call it; publisher.store_publication_times represents it",
    "input_verifier.check": "only called for repositories; source.read and run_controllers represent it",
    "known_heads": "only called for a target without branch and state; publisher.store_known_heads represents it",
    "functions.identity": "this config has no function outside of the process",
    "functions.requested_functions": "no call, an attribute",
    "writer.write_removal_message": "this config removes nothing",
    "publisher.push_approvals": "only with approvals by annotation; tests/isolation/test_review_isolation.py",
    "publisher.status_error": "no call, an attribute",
    "artifacts.repeat": "this config has no artifact; test_source_isolation.py raises exceptions in its requests",
    "sources.add_dependencies": "this config has no chart with dependencies; sources.read_artifact represents it",
    "sources.read_artifact": "this config has no artifact; test_source_isolation.py raises exceptions in it",
    "input_verifier": "does nothing, because `signing.verify_inputs` is off",
    "deprecated_settings": "no call, an attribute that only `validate` reads",
    "publisher.status_findings": "no call, an attribute",
    **dict.fromkeys(
        (
            "state_ref",
            "required_approvals",
            "draft_template",
            "removal_template",
            "has_annotation_approvals",
            "should_date_actions",
            "max_delete_percent",
            "shard",
            "max_pushes",
            "should_treat_missing_as_empty",
        ),
        "a value",
    ),
}


# The world


class Fleet:
    """Three clusters in two repositories; `change` asks for new versions of all packages."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        self.south = folder / "south.git"

    def build(self) -> None:
        World.create(self.world.folder)
        make_bare(self.south)
        for name in ("db", "web"):
            for version, replicas in (("v1", 1), ("v2", 2)):
                self.world.release(name, version, package(name, replicas))
        repositories = {f"{name}.yaml": repository(name, url) for name, url in REPOSITORIES.items()}
        self.world.write({"catalog.yaml": catalog(), **repositories})
        self.change("v1")
        self.passes().run()
        for repo in (self.world.fleet, self.south):
            for ref, commit in read_refs(repo).items():
                if ref.startswith("refs/heads/drafts/"):
                    git(repo, "update-ref", ref.replace("/drafts/", "/clusters/"), commit)

    def change(self, version: str) -> None:
        for name in PACKAGES:
            cluster, _, value = name.partition("-")
            self.world.write({f"{name}.yaml": variant(name, cluster, value, version)})

    def passes(self, fault: Fault | None = None, port: str = "") -> PassRunner:
        own = {
            "fleet": {"url": str(self.world.fleet)},
            "cache": str(self.world.folder / "cache"),
            "git": {"revision_tags": "all"},
        }
        settings = Settings.model_validate(own)
        parts = build_services(settings, self.world.source, clock=lambda: self.world.now)
        publisher: Any = build_push_publisher(settings)
        source: Any = parts.source
        tools = parts.pass_services
        holder, _, method = port.partition(".")
        if fault and holder == "publisher":
            publisher = FaultyPort(publisher, method, fault)
        elif fault and holder == "source":
            source = FaultyPort(source, method, fault)
        elif fault and holder == "writer" and method:
            make = tools.create_text_writer
            tools = replace(tools, create_text_writer=lambda *values: FaultyPort(make(*values), method, fault))
        elif fault and method:
            tools = replace(tools, **{holder: FaultyPort(getattr(tools, holder), method, fault)})
        elif fault and holder:
            tools = replace(tools, **{holder: fault.wrap(getattr(tools, holder))})
        self.forgive = parts.backoff.retry_now
        return PassRunner(source, parts.remotes, tools, publisher)

    @property
    def refs(self) -> Refs:
        return {"fleet": read_refs(self.world.fleet), "south": read_refs(self.south)}

    def content(self) -> Mapping[str, str]:
        """Return the tree of every branch that people see."""
        return {
            ref: git(folder, "rev-parse", f"{ref}^{{tree}}")
            for folder in (self.world.fleet, self.south)
            for ref in read_refs(folder)
            if ref.startswith("refs/heads/")
        }


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "world"
    Fleet(folder).build()
    return folder


@pytest.fixture(scope="module")
def place(base: Path) -> Path:
    # always the same path: the cache and the state contain it
    base.rename(base.with_name("built"))
    return base


@pytest.fixture
def fleet(place: Path) -> Iterator[Fleet]:
    shutil.copytree(place.with_name("built"), place, symlinks=True)
    yield Fleet(place)
    shutil.rmtree(place)


@dataclass(frozen=True)
class Undisturbed:
    before: Refs
    after: Refs
    content: Mapping[str, str]


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> Undisturbed:
    shutil.copytree(place.with_name("built"), place, symlinks=True)
    fleet = Fleet(place)
    passes = fleet.passes()
    passes.run()
    before = fleet.refs
    fleet.change("v2")
    passes.run()
    assert not passes.summary.findings
    passes.run()
    actual_undisturbed = Undisturbed(before, fleet.refs, fleet.content())
    shutil.rmtree(place)
    return actual_undisturbed


# The claims


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("boundary", [*STAGES.values(), *PORTS.values()], ids=[*STAGES, *PORTS])
def test_an_unexpected_exception_stays_within_its_scope(
    boundary: Boundary,
    fleet: Fleet,
    undisturbed: Undisturbed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = Fault(boundary.applies)
    port = "" if boundary.target.startswith("reconciler.") else boundary.target
    if not port:
        monkeypatch.setattr(boundary.target, fault.wrap(_resolve(boundary.target)))
    passes = fleet.passes(fault, port)
    for _ in range(boundary.passes_before):
        passes.run()
    fleet.change("v2")

    for error in ERRORS:
        fault.error, fault.raised = error, 0
        if not boundary.passes_before:
            passes = fleet.passes(fault, port)
        fleet.forgive()
        capsys.readouterr()
        passes.run()

        assert fault.raised, error
        refs = fleet.refs
        assert _of_others(refs, boundary) == _of_others(_expected(undisturbed, boundary), boundary), error
        assert _published(refs) == _published(undisturbed.before), error
        is_reported = boundary.reach != "log"
        assert max(exit_status_of(passes.summary.findings), not passes.summary.is_clean) == is_reported, error
        assert any(finding.code == "InternalError" for finding in passes.summary.findings) == is_reported, error
        assert f"{error.__name__}: injected" in capsys.readouterr().out

    fault.error = None
    fleet.forgive()
    passes.run()
    assert fleet.content() == undisturbed.content
    assert _of_others(fleet.refs, boundary) == _of_others(undisturbed.after, boundary)
    assert (exit_status_of(passes.summary.findings), passes.summary.is_clean) == (0, True)


def test_every_port_of_a_pass_is_a_boundary() -> None:
    methods = {"publisher": PlanPublisher, "functions": FunctionIdentities, "writer": DraftTextWriter}
    declared = {boundary.target for boundary in PORTS.values()} | NOT_CALLED.keys()
    ports = {field.name for field in fields(PassServices)}
    called = {f"{holder}.{name}" for holder, port in methods.items() for name in vars(port) if not name.startswith("_")}
    in_parts = {item.partition(".")[0] for item in declared if "." in item}
    assert ports - declared - in_parts == set()
    assert called - declared == set()


def _resolve(target: str) -> Callable[..., Any]:
    module, _, name = target.rpartition(".")
    try:
        return getattr(__import__(module, fromlist=["_"]), name)
    except ModuleNotFoundError:
        return getattr(_resolve(module), name)


def _expected(undisturbed: Undisturbed, boundary: Boundary) -> Refs:
    return undisturbed.before if boundary.reach == "config" else undisturbed.after


def _of_others(refs: Refs, boundary: Boundary) -> Refs:
    """Return the refs that an exception may not change, without the status."""
    if boundary.reach == "remote":
        refs = {"south": refs["south"]}
    return {
        repository: {
            ref: commit
            for ref, commit in item.items()
            if ref != STATUS and not (boundary.reach == "cluster" and "/berlin" in ref)
        }
        for repository, item in refs.items()
    }


def _published(refs: Refs) -> Mapping[str, str]:
    return {ref: commit for item in refs.values() for ref, commit in item.items() if "/clusters/" in ref}
