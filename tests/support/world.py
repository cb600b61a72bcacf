"""A small real fleet: a catalog, a fleet repository and a config folder. Passes run in the test process."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, Self

from reconciler.bootstrap.console import build_fleet_indexer, observe_pass
from reconciler.bootstrap.console_config import build_config_pages
from reconciler.bootstrap.console_reviews import ConsoleReviews, build_console_reviews
from reconciler.bootstrap.publishers import build_dry_run_publisher, build_push_publisher, read_summary
from reconciler.bootstrap.services import build_services
from reconciler.git.errors import GitError
from reconciler.git.push_outcomes import PushOutcome, PushReport, PushUnit
from reconciler.inspect.fleet_index import FleetIndexer, ObservedPass
from reconciler.inspect.report import read_fleet
from reconciler.inspect.validate import validate
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import parse_yaml
from reconciler.output.report.builder import build_fleet_report
from reconciler.output.report.model import FleetReport
from reconciler.output.review.action_results import ReviewActionResult
from reconciler.output.review.open_drafts import DraftDetails
from reconciler.planning.model.outcomes import Blocked, Draft, PackageOutcome, Unchanged
from reconciler.planning.model.targets import Target
from reconciler.reconcile.commits import WrittenPlan
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.publishers import PushPublisher
from reconciler.reconcile.reconcile_pass import PassReport, run_pass
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import ReviewSelection, TargetReference
from reconciler.reconcile.review_actions import ApprovalResult, ReviewAction, ReviewVerb
from reconciler.reconcile.services import PlanPublisher
from reconciler.review.actions import apply_review_action
from reconciler.review.drafts import DraftReview
from reconciler.server.console.config_pages import ConfigPages
from reconciler.settings import Settings
from tests.support.git_repositories import (
    SQUASH_MESSAGE,
    commit_files,
    delete_ref,
    git,
    list_paths,
    make_bare,
    merge_descendant,
    point_ref,
    read_file,
    read_ref,
    read_refs,
)

Files = Mapping[str, str | None]
CLUSTERS = ("berlin", "lisbon")
REGIONS = {"berlin": "north", "lisbon": "south"}
STATE = "refs/reconciler/state/"


def deployment(name: str, replicas: int = 2, image: str = "1.0") -> str:
    """Return a small Deployment with comments, which each merge must keep."""
    return textwrap.dedent(f"""\
        apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: {name}
        spec:
          replicas: {replicas} # enough for a small site
          template:
            spec:
              containers:
                - name: {name}
                  image: example.com/{name}:{image}
        """)


def config_map(name: str, injection: str = "", **data: str) -> str:
    """Return a ConfigMap. `injection` makes it an injection point."""
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata:", f"  name: {name}"]
    lines += ["  annotations:", f"    kpt.dev/config-injection: {injection}"] if injection else []
    lines += ["data:", *(f"  {key}: {value}" for key, value in data.items())]
    return "\n".join(lines) + "\n"


def package(name: str, replicas: int = 2, image: str = "1.0", **more: str) -> dict[str, str]:
    """Return an upstream package: a Kptfile, a Deployment, and more files without their suffix."""
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: {name}\n"
    files = {f"{stem}.yaml": content for stem, content in more.items()}
    return {"Kptfile": kptfile, "deployment.yaml": deployment(name, replicas, image), **files}


def repository(name: str, url: str = "./fleet.git", **git_fields: str) -> str:
    """Return a deployment Repository with the label of its region."""
    lines = ["apiVersion: config.porch.kpt.dev/v1alpha1", "kind: Repository", "metadata:", f"  name: {name}"]
    lines += [f"  labels: {{region: {REGIONS.get(name, 'north')}}}", "spec:", "  type: git", "  deployment: true"]
    lines += ["  git:", f"    repo: {url}", *(f"    {key}: {value}" for key, value in git_fields.items())]
    return "\n".join(lines) + "\n"


def catalog(name: str = "catalog") -> str:
    """Return the Repository of the upstream packages."""
    return repository(name, f"./{name}.git", branch="main").replace("deployment: true", "deployment: false")


def variant(name: str, repo: str, package: str, revision: str = "v1", upstream: str = "", extra: str = "") -> str:
    """Return a PackageVariant. `extra` contains more lines of its spec, one field per line."""
    lines = ["apiVersion: config.porch.kpt.dev/v1alpha1", "kind: PackageVariant", "metadata:", f"  name: {name}"]
    lines += ["spec:", f"  upstream: {{repo: catalog, package: {upstream or package}, revision: {revision}}}"]
    lines += [f"  downstream: {{repo: {repo}, package: {package}}}"]
    lines += [f"  {line}" for line in extra.splitlines()]
    return "\n".join(lines) + "\n"


def injected_set(package: str, clusters: Iterable[str], revision: str = "v1") -> str:
    """Return a PackageVariantSet that selects clusters and injects the object of their region."""
    targets = "".join(f"        - name: {cluster}\n" for cluster in clusters)
    return (
        "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\n"
        f"metadata:\n  name: {package}\nspec:\n"
        f"  upstream: {{repo: catalog, package: {package}, revision: {revision}}}\n"
        f"  targets:\n    - repositories:\n{targets}"
        "      template:\n        injectors:\n"
        "          - kind: ConfigMap\n            nameExpr: \"'region-' + repository.labels['region']\"\n"
    )


@dataclass(frozen=True)
class PassResult:
    """One pass: its report, and the refs of the fleet before and after."""

    report: PassReport
    before: Mapping[str, str]
    after: Mapping[str, str]

    @property
    def is_unchanged(self) -> bool:
        """Whether no ref of the fleet changed and nothing was rendered."""
        return self.before == self.after and self.report.render_count == 0

    @property
    def changed_branches(self) -> set[str]:
        """The branches that were changed, created or deleted, without state and status."""
        names = self.before.keys() | self.after.keys()
        moved = {name for name in names if self.before.get(name) != self.after.get(name)}
        return {name.removeprefix("refs/heads/") for name in moved if "reconciler/" not in name}

    @property
    def outcomes(self) -> dict[str, str]:
        """The decision for each target: `draft`, the reason for no change, the deletion step, or the blocking codes."""
        plans = self.report.plan.targets
        mapping = {
            f"{plan.target.name}/{removal_outcome.package}": removal_outcome.kind
            for plan in plans
            for removal_outcome in plan.removals
        }
        mapping |= {str(item.variant.target): format_outcome(item) for _, item in self.report.plan.list_outcomes()}
        for plan in plans:
            mapping |= {
                f"{plan.target.name}/{held_removal.package}": held_removal.finding.code for held_removal in plan.held
            }
        return mapping

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings."""
        return self.report.plan.list_findings()

    @property
    def codes(self) -> set[str]:
        """The codes of all findings."""
        return {finding.code for finding in self.findings}


def format_outcome(outcome: PackageOutcome) -> str:
    """Return the kind of a draft, the reason for no change, or the codes of the errors that block the package."""
    match outcome:
        case Draft():
            return "draft"
        case Unchanged(reason=why):
            return why
        case Blocked():
            codes = sorted({finding.code for finding in outcome.findings})
            ready = {condition.type: condition.reason for condition in outcome.conditions}
            return " ".join(codes) or ready["Ready"]


class _InterruptedPublisher:
    """A publisher that runs another action before its first push or approval."""

    def __init__(
        self, push: PushPublisher, pending: list[Callable[[], object]], before: Literal["publish", "approve"]
    ) -> None:
        self._push = push
        self._pending = pending
        self._before = before
        self.push_config_proposal, self.push_status, self.push_tags = (
            push.push_config_proposal,
            push.push_status,
            push.push_tags,
        )
        self.update_pull_requests, self.store_publication_times, self.store_known_heads = (
            push.update_pull_requests,
            push.store_publication_times,
            push.store_known_heads,
        )

    @property
    def status_error(self) -> str:
        return self._push.status_error

    @property
    def status_findings(self) -> Sequence[Finding]:
        return self._push.status_findings

    def publish(self, remote: Remote, written: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        self._interrupt("publish")
        return self._push.publish(remote, written)

    def push_approvals(self, groups: Sequence[tuple[Remote, Sequence[WrittenPlan]]], now: int) -> ApprovalResult:
        self._interrupt("approve")
        return self._push.push_approvals(groups, now)

    def _interrupt(self, before: str) -> None:
        while self._pending and before == self._before:
            self._pending.pop()()


class _InterruptedReview(DraftReview):
    """A review that runs another action before its first push."""

    def __init__(self, review: DraftReview, pending: list[Callable[[], object]]) -> None:
        vars(self).update(vars(review))
        self._pending = pending

    def push(self, destination: Target, units: Sequence[PushUnit]) -> PushReport:
        while self._pending:
            self._pending.pop()()
        return super().push(destination, units)


class World:
    """Bare repositories and a config folder below `folder`. The clock changes only when a test changes `now`."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.now = 1_500_000_000
        self.config = folder / "config"
        self.catalog = folder / "catalog.git"
        self.fleet = folder / "fleet.git"
        self._settings = settings

    @classmethod
    def create(cls, folder: Path, **settings: object) -> World:
        """Create an empty fleet in a folder."""
        world = cls(folder, **settings)
        world.config.mkdir(parents=True)
        make_bare(world.catalog)
        make_bare(world.fleet)
        return world

    def with_settings(self, **settings: object) -> Self:
        """Return the same fleet with other settings."""
        result = copy(self)
        result._settings = {**self._settings, **settings}
        return result

    # Actions of platform engineers.

    def write(self, files: Files) -> None:
        """Write files of the config folder. None removes a file."""
        for path, content in files.items():
            target = self.config / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                target.unlink()
            else:
                target.write_text(content)

    def release(self, name: str, version: str, files: Mapping[str, str], seconds: int = 1_000_000_000) -> str:
        """Replace a package in the catalog and tag it; return the commit."""
        changed: dict[str, bytes | None] = {name: None}
        changed |= {f"{name}/{path}": content.encode() for path, content in files.items()}
        commit = commit_files(self.catalog, "refs/heads/main", changed, f"{name} {version}", seconds)
        point_ref(self.catalog, f"refs/tags/{name}/{version}", commit)
        return commit

    # Passes.

    def sync(self) -> PassResult:
        """Run one pass with pushes in a new context."""
        before = read_refs(self.fleet)
        report = self._pass(build_push_publisher(self.read_settings()))
        return PassResult(report, before, read_refs(self.fleet))

    def plan(self) -> PassResult:
        """Run one pass without pushes."""
        before = read_refs(self.fleet)
        return PassResult(self._pass(build_dry_run_publisher(), should_sign=False), before, read_refs(self.fleet))

    def validate(self) -> tuple[Finding, ...]:
        """Return the findings of `reconciler validate`."""
        parts = build_services(self.read_settings(), self.source, clock=lambda: self.now)
        with parts.remotes as remotes:
            return validate(parts.source, remotes, parts.pass_services).findings

    def sync_while(self, meddle: Callable[[], object], before: Literal["publish", "approve"] = "publish") -> PassResult:
        """Run one pass with pushes, and run another action once before the first push or approval."""
        push = build_push_publisher(self.read_settings())
        refs = read_refs(self.fleet)
        return PassResult(self._pass(_InterruptedPublisher(push, [meddle], before)), refs, read_refs(self.fleet))

    def service(self, **options: Any) -> PassRunner:
        """Return the pass runner of a long-lived process."""
        settings = self.read_settings()
        parts = build_services(settings, self.source, clock=lambda: self.now, should_sign=True)
        publisher = build_push_publisher(settings)
        return PassRunner(parts.source, parts.remotes, parts.pass_services, publisher, **options)

    def _pass(self, publisher: PlanPublisher, *, should_sign: bool = True) -> PassReport:
        parts = build_services(self.read_settings(), self.source, clock=lambda: self.now, should_sign=should_sign)
        with parts.remotes as remotes:
            return run_pass(parts.source, remotes, parts.pass_services, publisher)

    # Review commands.

    def run_review_action(
        self, verb: ReviewVerb, *places: str, meddle: Callable[[], object] | None = None, **more: Any
    ) -> tuple[ReviewActionResult, ...]:
        """Propose, approve, reject or drop as Grace; without targets all of them. `meddle` runs before the first
        push.
        """
        review_selection = ReviewSelection(
            tuple(TargetReference(*place.split("/", 1)) for place in places),
            more.pop("selector", ""),
            more.pop("removals", False),
        )
        act = ReviewAction(verb, **{"person": ("Grace", "grace@example.com"), **more})
        with self.open_review([meddle] if meddle else []) as review:
            return apply_review_action(review, review_selection, act)

    def list_open_drafts(self, *places: str, whole: bool = False) -> list[DraftDetails]:
        """Return the open drafts of these clusters, or of all."""
        requested_review_selection = ReviewSelection(tuple(TargetReference(*place.split("/", 1)) for place in places))
        with self.open_review([]) as review:
            return [
                review.read_draft_details(
                    draft, requested_review_selection.packages_of(bench.target.name), should_read_files=whole
                )
                for bench in review.open_targets(requested_review_selection)
                for draft in bench.drafts
            ]

    def observe_pass(self, receive_report: Callable[[PassReport], object] = lambda _report: None) -> ObservedPass:
        """Run one pass, and return its data for the index of the console."""
        observed: list[ObservedPass] = []

        def observe(report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
            receive_report(report)
            observed.append(observe_pass(report, failures, self.now))
            return ()

        self.service(observe=observe).run()
        return observed[0]

    def create_indexer(self) -> FleetIndexer:
        """Return an indexer that reads the cache of this fleet, as a thread of the service does."""
        return build_fleet_indexer(self.read_settings(), self.source)

    def create_config_pages(self) -> ConfigPages:
        """Return the config as the console of this fleet shows it."""
        return build_config_pages(self.read_settings(), self.source)

    def report(self) -> FleetReport:
        """Return the report of the fleet, read by a new process."""
        summary = read_summary(self.read_settings())
        with self.open_review([]) as review:
            return build_fleet_report(
                read_fleet(review, review.open_targets(ReviewSelection()), review.report_progress),
                review.config_id,
                summary,
            )

    @contextmanager
    def open_review(self, before_push: list[Callable[[], object]]) -> Iterator[DraftReview]:
        """Open the config and the remotes of this fleet. The actions in `before_push` run before the first push."""
        parts = build_services(self.read_settings(), self.source, clock=lambda: self.now, should_sign=True)
        with parts.remotes as remotes:
            yield _InterruptedReview(DraftReview(parts.source, remotes, parts.pass_services), before_push)

    def build_console_reviews(self, wake_pass: Callable[[], None]) -> ConsoleReviews:
        """Return the reviews in the console, as the service builds them."""
        return build_console_reviews(self.read_settings(), self.source, wake_pass, lambda: self.now)

    @property
    def command_options(self) -> tuple[str, ...]:
        """The options with which a command uses this fleet."""
        places = {"--config": self.config, "--fleet": self.fleet, "--cache": self.folder / "cache"}
        return tuple(text for option, path in places.items() for text in (option, str(path)))

    @property
    def source(self) -> str:
        """The location of the config for passes."""
        return str(self.config)

    def read_settings(self, **more: object) -> Settings:
        """Return the settings of the fleet, with other groups of settings."""
        # With the few packages of a test, one package is more than the default share for deletions.
        guards = {"max_delete_percent": 100}
        own = {"fleet": {"url": str(self.fleet)}, "cache": str(self.folder / "cache"), "guards": guards}
        settings = {**own, **self._settings, **more}
        # Local remotes respond at once, so that more threads only cost time. The tests of commands run them in parallel.
        return Settings.model_validate(
            {**settings, "git": {"max_fetches": 1, "max_pushes": 1, **settings.get("git", {})}}
        )

    def sync_until_unchanged(self) -> PassResult:
        """Run passes until one changes nothing and return it. More than three passes fail."""
        for _ in range(4):
            pass_result = self.sync()
            if pass_result.is_unchanged:
                return pass_result
        raise AssertionError(
            f"never silent: {pass_result.outcomes}, moved {pass_result.changed_branches}, {pass_result.report.render_count} renders"
        )

    # Actions of the owners of a cluster, directly on the fleet repository.

    def commit(self, branch: str, files: Files, message: str = "by hand") -> str:
        """Commit to a branch of the fleet."""
        data = {path: None if content is None else content.encode() for path, content in files.items()}
        return commit_files(self.fleet, f"refs/heads/{branch}", data, message, 1_100_000_000)

    def edit(self, branch: str, path: str, old: str, new: str) -> str:
        """Replace text in one file of a branch."""
        content = self.text(branch, path)
        assert old in content
        return self.commit(branch, {path: content.replace(old, new)})

    def add_submodule(self, branch: str, path: str) -> str:
        """Commit a submodule with a commit of another repository to a branch of the fleet."""
        clone = self._clone()
        git(clone, "checkout", "--quiet", "-B", branch, f"origin/{branch}")
        git(clone, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{path}")
        git(clone, "commit", "--quiet", "-m", "by hand")
        git(clone, "push", "--quiet", "origin", branch)
        return self.head(branch)

    def update_branch(self, cluster: str) -> str:
        """Merge the target branch into its draft, as forges do on request; return the new head of the draft."""
        clone, draft = self._clone(), f"drafts/{cluster}"
        git(clone, "checkout", "--quiet", "-B", draft, f"origin/{draft}")
        git(clone, "merge", "--quiet", "--no-edit", f"origin/clusters/{cluster}")
        git(clone, "push", "--quiet", "origin", draft)
        return self.head(draft)

    def merge(self, cluster: str, how: str = "merge", draft: str = "", delete: bool = False) -> str:
        """Merge the draft of a cluster by `fast-forward`, `merge`, `squash` or `rebase`; return the new head."""
        draft = draft or f"drafts/{cluster}"
        if not merge_descendant(self.fleet, f"clusters/{cluster}", draft, how):
            clone = self._clone()
            git(clone, "checkout", "--quiet", "-B", f"clusters/{cluster}", f"origin/clusters/{cluster}")
            _MERGES[how](clone, draft)
            git(clone, "push", "--quiet", "origin", f"clusters/{cluster}")
        if delete:
            self.delete(draft)
        return self.head(f"clusters/{cluster}")

    def pick(self, cluster: str, package: str, message: str = "") -> str:
        """Cherry-pick the last commit of one package from the draft; return the new head."""
        clone = self._clone()
        git(clone, "checkout", "--quiet", "-B", f"clusters/{cluster}", f"origin/clusters/{cluster}")
        output = git(clone, "log", "-1", "--format=%H", f"origin/drafts/{cluster}", "--", package)
        git(clone, "-c", "core.editor=true", "cherry-pick", *(("-e",) if message else ()), output)
        git(clone, "push", "--quiet", "origin", f"clusters/{cluster}")
        return self.head(f"clusters/{cluster}")

    def revert(self, cluster: str, commit: str = "HEAD", *flags: str) -> str:
        """Revert a commit on a target branch; return the new head."""
        clone = self._clone()
        git(clone, "checkout", "--quiet", "-B", f"clusters/{cluster}", f"origin/clusters/{cluster}")
        git(clone, "revert", "--no-edit", *flags, commit)
        git(clone, "push", "--quiet", "origin", f"clusters/{cluster}")
        return self.head(f"clusters/{cluster}")

    def _clone(self) -> Path:
        clone = self.folder / "working-clone"
        if clone.exists():
            git(clone, "fetch", "--quiet", "--prune", "origin")
        else:
            git(self.folder, "clone", "--quiet", "--shared", "--no-checkout", str(self.fleet), str(clone))
        return clone

    def delete(self, branch: str) -> None:
        """Delete a branch of the fleet."""
        delete_ref(self.fleet, f"refs/heads/{branch}")

    def set_ref(self, ref: str, commit: str) -> None:
        """Set a ref of the fleet to a commit."""
        point_ref(self.fleet, ref, commit)

    # The current content of the fleet.

    def head(self, branch: str) -> str:
        """Return the head of a branch in the fleet, or ""."""
        return read_ref(self.fleet, f"refs/heads/{branch}") or ""

    def text(self, branch: str, path: str) -> str:
        """Return a file of a branch of the fleet with its last newline."""
        return read_file(self.fleet, f"refs/heads/{branch}", path) + "\n"

    def paths(self, repository: Path, branch: str, folder: str = "") -> list[str]:
        """Return the paths below a folder of a branch, or [] when the folder does not exist."""
        return list_paths(repository, f"refs/heads/{branch}", folder)

    def files(self, repository: Path, branch: str, folder: str = "") -> dict[str, str]:
        """Return the files below a folder of a branch by path, without their last newline."""
        start = f"{folder}/" if folder else ""
        return {
            path: read_file(repository, f"refs/heads/{branch}", start + path)
            for path in self.paths(repository, branch, folder)
        }

    def tree(self, branch: str, path: str) -> str | None:
        """Return the id of the tree at a path of a branch."""
        return read_ref(self.fleet, f"refs/heads/{branch}:{path}")

    def record(self, cluster: str, package: str) -> dict[str, object]:
        """Return the recorded state of a package."""
        text = read_file(self.fleet, f"{STATE}{cluster}", f"packages/{package}.json")
        found: dict[str, object] = json.loads(text)
        return found

    def status(self, kind: str, name: str) -> dict[str, object]:
        """Return the status of a config object from the status branch."""
        text = self.text("reconciler/status", f"objects/default/{kind}/{name}.yaml")
        status: dict[str, object] = parse_yaml(text).documents[0].data["status"]
        return status

    def package_status(self, branch: str, package: str) -> dict[str, Any]:
        """Return the content of the status file of a package."""
        value: dict[str, Any] = parse_yaml(self.text(branch, f".reconciler/{package}.yaml")).documents[0].data["status"]
        return value

    def reason(self, name: str, condition: str = "Ready", kind: str = "PackageVariant") -> str:
        """Return the reason of a condition of a config object, by default Ready of a PackageVariant."""
        conditions = self.status(kind, name)["conditions"]
        assert isinstance(conditions, list)
        return str({condition["type"]: condition["reason"] for condition in conditions}[condition])


def _merge(clone: Path, draft: str) -> None:
    git(clone, "merge", "--quiet", "--no-ff", "--no-edit", f"origin/{draft}")


def _fast_forward(clone: Path, draft: str) -> None:
    git(clone, "merge", "--quiet", "--ff-only", f"origin/{draft}")


def _squash(clone: Path, draft: str) -> None:
    git(clone, "merge", "--quiet", "--squash", f"origin/{draft}")
    git(clone, "commit", "--quiet", "-m", SQUASH_MESSAGE)


def _rebase(clone: Path, draft: str) -> None:
    branch = git(clone, "symbolic-ref", "--short", "HEAD")
    git(clone, "checkout", "--quiet", "--detach", f"origin/{draft}")
    git(clone, "rebase", "--quiet", "--force-rebase", branch)
    git(clone, "checkout", "--quiet", "-B", branch)


_MERGES = {"merge": _merge, "fast-forward": _fast_forward, "squash": _squash, "rebase": _rebase}
MERGES = tuple(_MERGES)


def small_world(folder: Path, **settings: object) -> World:
    """Return two clusters with a gateway that gets the settings of its region. Berlin also has metrics."""
    world = World.create(folder, **settings)
    for path, content in _small_catalog().items():
        (world.catalog / path).parent.mkdir(parents=True, exist_ok=True)
        (world.catalog / path).write_bytes(content)
    world.write(
        {
            "catalog.yaml": catalog(),
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            "gateway.yaml": injected_set("gateway", CLUSTERS),
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics"),
            **{
                f"regions/{region}.yaml": config_map(f"region-{region}", api=f"api.{region}")
                for region in REGIONS.values()
            },
        }
    )
    return world


@cache
def _small_catalog() -> dict[str, bytes]:
    # The catalog is the same for all tests, so it is created once.
    with TemporaryDirectory() as folder:
        world = World.create(Path(folder) / "world")
        world.release("gateway", "v1", package("gateway", endpoints=config_map("endpoints", "required", api="none")))
        world.release("metrics", "v1", package("metrics"))
        files = [path for path in world.catalog.rglob("*") if path.is_file()]
        return {path.relative_to(world.catalog).as_posix(): path.read_bytes() for path in files}
