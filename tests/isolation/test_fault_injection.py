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

from reconciler.cli.ends import status_of
from reconciler.daemon.passes import Passes
from reconciler.daemon.tools import FunctionsToday, Publisher, Tools
from reconciler.planning.drafts import Writer
from reconciler.settings import Settings
from reconciler.wiring import build_parts, build_push
from tests.support.git_env import git, make_bare, read_refs
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
        found = getattr(self._port, name)
        return self._fault.wrap(found) if name == self._method else found


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
        target: a function inside of a pass, by the module that looks it up; or a field of `Tools`, or `port.method`.
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
        "reconciler.snapshot.catalog._parse", lambda file, *_: b"name: berlin-web" in file.data
    ),
    "reading-the-objects-of-a-file": Boundary(
        "reconciler.snapshot.catalog._read_object", lambda path, *_: path == "berlin-web.yaml"
    ),
    "reading-a-repository": Boundary(
        "reconciler.rules.repository.read_repository", lambda one: one.key.name == "berlin", passes_before=0
    ),
    "reading-a-package-variant": Boundary(
        "reconciler.rules.variants.room.result_of_variant", lambda one, *_: one.key.name == "berlin-web"
    ),
    "reading-a-state": Boundary(
        "reconciler.daemon.remotes.read_state",
        lambda files: b"clusters/berlin" in files["destination.json"],
        passes_before=0,
    ),
    "comparing-with-the-last-pass": Boundary(
        "reconciler.daemon.recollection.Recollection.plan", on_berlin(1), "nothing", passes_before=2
    ),
    "surveying-a-destination": Boundary("reconciler.daemon.desk.survey", on_berlin()),
    "deciding-on-a-destination": Boundary(
        "reconciler.planning.plan.decide_together", lambda *a: a[2].destination.name == "berlin"
    ),
    "deciding-on-a-package": Boundary(
        "reconciler.planning.decide._decide", lambda question, *_: question.variant.place.repository == "berlin"
    ),
    "reading-an-upstream-package": Boundary(
        "reconciler.daemon.desk._Sources.upstream", lambda self, _: "fleet" in self._remote.mirror.url, "remote"
    ),
    "rendering-a-package": Boundary(
        "reconciler.planning.render.render", lambda one, *_: one.place.repository == "berlin"
    ),
    "describing-a-draft": Boundary(
        "reconciler.wiring.parts.draft_message", lambda draft, *_: draft.variant.place.repository == "berlin"
    ),
    "planning-a-destination": Boundary(
        "reconciler.daemon.desk.plan_destination", lambda one, _: one.destination.name == "berlin"
    ),
    "finding-missing-tags": Boundary("reconciler.daemon.desk.missing_tags", on_berlin()),
    "writing-the-changes-of-a-package": Boundary("reconciler.daemon.publish._changes", on_berlin(1)),
    "writing-a-state": Boundary(
        "reconciler.daemon.publish._with_heads", lambda plan, _: plan.destination.name == "berlin"
    ),
    "opening-a-mirror": Boundary(
        "reconciler.gitio.cache.MirrorFolder.prepare", lambda self: "fleet" in str(self.path), "remote", passes_before=0
    ),
    "fetching-a-remote": Boundary("reconciler.gitio.mirror.Mirror.fetch", in_fleet, "remote"),
    "reading-ahead": Boundary(
        "reconciler.daemon.remotes.Remote.read_ahead",
        lambda self, *_: "fleet" in self.mirror.url,
        "log",
        passes_before=0,
    ),
    "writing-to-a-mirror": Boundary("reconciler.gitio.mirror.Mirror.write", in_fleet, "remote"),
    "pushing-to-a-remote": Boundary("reconciler.gitio.mirror.Mirror.push", in_fleet, "remote"),
    "maintaining-a-mirror": Boundary("reconciler.gitio.mirror.Mirror.maintain", in_fleet, "nothing"),
    "keeping-the-result-of-a-destination": Boundary(
        "reconciler.daemon.desk.left_by", lambda one, *_: one.destination.name == "berlin", "nothing"
    ),
    "writing-the-status-of-an-object": Boundary(
        "reconciler.reporting.objects.object_file", lambda status, *_: status.key.name == "berlin-web", "nothing"
    ),
    "collecting-the-status-of-an-object": Boundary(
        "reconciler.reporting.destination_statuses._outcome",
        lambda outcome, _: outcome.variant.owner.key.name == "berlin-web",
        "nothing",
    ),
    "writing-the-status": Boundary("reconciler.daemon.publishers.Push._write_status", always, "nothing"),
    "parsing-package-variants-at-all": Boundary("reconciler.rules.variants.room.without_cycles", always, "config"),
}

PORTS = {
    **{
        name: Boundary(name, reach="config")
        for name in (
            "read_catalog",
            "destinations",
            "urls",
            "rooms",
            "renderer",
            "tagging",
            "writer",
            "clock",
            "source.read",
        )
    },
    "load": Boundary("load", reach="nothing"),
    "rivals": Boundary("rivals", reach="nothing"),
    "conflicts": Boundary("conflicts", reach="config"),
    "progress": Boundary("progress", lambda stage, *_: stage == "planning", "config"),
    "writer.words": Boundary("writer.words", lambda draft, _: draft.variant.place.repository == "berlin"),
    "functions.look_again": Boundary("functions.look_again", reach="config"),
    "functions.digest": Boundary("functions.digest", reach="config"),
    "proposals.heads": Boundary("proposals.heads", reach="config"),
    "proposals.plan": Boundary("proposals.plan", reach="nothing"),
    "publisher.publish": Boundary("publisher.publish", lambda remote, _: "fleet" in remote.mirror.url, "remote"),
    "publisher.tag": Boundary(
        "publisher.tag", lambda remote, _: "fleet" in remote.mirror.url, "remote", passes_before=0
    ),
    "publisher.request": Boundary("publisher.request", reach="nothing"),
    "publisher.propose": Boundary("publisher.propose", reach="nothing"),
    "publisher.finish": Boundary("publisher.finish", reach="nothing"),
    "publisher.remember": Boundary("publisher.remember", reach="nothing"),
    "publisher.keep_heads": Boundary("publisher.keep_heads", reach="nothing"),
}
# Ports and settings of `Tools` that this pass does not call, with the reason.
NOT_CALLED = {
    "claimed_targets": "only conflicting definitions ask for it; rivals raises at the same place",
    "lint": "only `validate` calls it",
    "fleet": "only `validate` calls it",
    "made_kinds": "only `schema` calls it",
    "places": "only `validate` calls it",
    "upstreams_at": "only `why` and `verify` call it",
    "executor": "tests/executors raise exceptions in workers",
    "requests": "without a forge nothing is asked; publisher.request stands for it",
    "lock_tree": "only the adoption of a package calls it",
    "published": "only rollouts and approvals ask it; publisher.remember stands for it",
    "known_heads": "only a cluster without branch and state asks it; publisher.keep_heads stands for it",
    "functions.identity": "this config has no function outside of the process",
    "functions.asked": "no call, an attribute",
    "writer.removal": "this config removes nothing",
    "publisher.approve": "only with approvals by annotation; tests/isolation/test_review_isolation.py",
    "publisher.unwritten": "no call, an attribute",
    "publisher.status_findings": "no call, an attribute",
    **dict.fromkeys(
        (
            "state_ref",
            "draft_template",
            "removal_template",
            "by_annotation",
            "dates_actions",
            "max_delete_percent",
            "shard",
            "max_pushes",
            "missing_is_empty",
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
        World.new(self.world.folder)
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
            cluster, _, made = name.partition("-")
            self.world.write({f"{name}.yaml": variant(name, cluster, made, version)})

    def passes(self, fault: Fault | None = None, port: str = "") -> Passes:
        own = {
            "fleet": {"url": str(self.world.fleet)},
            "cache": str(self.world.folder / "cache"),
            "git": {"revision_tags": "all"},
        }
        settings = Settings.model_validate(own)
        parts = build_parts(settings, self.world.source, clock=lambda: self.world.now)
        publisher: Any = build_push(settings)
        source: Any = parts.source
        tools = parts.tools
        holder, _, method = port.partition(".")
        if fault and holder == "publisher":
            publisher = FaultyPort(publisher, method, fault)
        elif fault and holder == "source":
            source = FaultyPort(source, method, fault)
        elif fault and holder == "writer" and method:
            make = tools.writer
            tools = replace(tools, writer=lambda config: FaultyPort(make(config), method, fault))
        elif fault and method:
            tools = replace(tools, **{holder: FaultyPort(getattr(tools, holder), method, fault)})
        elif fault and holder:
            tools = replace(tools, **{holder: fault.wrap(getattr(tools, holder))})
        self.forgive = parts.backoff.forgive
        return Passes(source, parts.remotes, tools, publisher)

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
    assert not passes.told.findings
    passes.run()
    found = Undisturbed(before, fleet.refs, fleet.content())
    shutil.rmtree(place)
    return found


# The claims


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
        found = fleet.refs
        assert _of_others(found, boundary) == _of_others(_expected(undisturbed, boundary), boundary), error
        assert _published(found) == _published(undisturbed.before), error
        is_reported = boundary.reach != "log"
        assert max(status_of(passes.told.findings), not passes.told.clean) == is_reported, error
        assert any(one.code == "InternalError" for one in passes.told.findings) == is_reported, error
        assert f"{error.__name__}: injected" in capsys.readouterr().out

    fault.error = None
    fleet.forgive()
    passes.run()
    assert fleet.content() == undisturbed.content
    assert _of_others(fleet.refs, boundary) == _of_others(undisturbed.after, boundary)
    assert (status_of(passes.told.findings), passes.told.clean) == (0, True)


def test_every_port_of_a_pass_is_a_boundary() -> None:
    methods = {"publisher": Publisher, "functions": FunctionsToday, "writer": Writer}
    declared = {one.target for one in PORTS.values()} | NOT_CALLED.keys()
    ports = {one.name for one in fields(Tools)}
    called = {f"{holder}.{name}" for holder, port in methods.items() for name in vars(port) if not name.startswith("_")}
    in_parts = {one.partition(".")[0] for one in declared if "." in one}
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
            for ref, commit in found.items()
            if ref != STATUS and not (boundary.reach == "cluster" and "/berlin" in ref)
        }
        for repository, found in refs.items()
    }


def _published(refs: Refs) -> Mapping[str, str]:
    return {ref: commit for found in refs.values() for ref, commit in found.items() if "/clusters/" in ref}
