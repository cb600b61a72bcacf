"""A small test fleet for any sequence of changes by users, upstreams and daemons, and the invariants of a pass.

The module does not implement the planning again. Users write tokens. A pass must not lose a token that existed before
it, unless users removed the token from the cluster branch themselves.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import Services, build_services
from reconciler.git.push_outcomes import PushOutcome
from reconciler.planning.decide.fleet_plan import FleetPlan
from reconciler.planning.model.state import TargetState, parse_state
from reconciler.reconcile.commits import TagResult, WrittenPlan
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.reconcile.publishers import PushPublisher
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import ReviewSelection, TargetReference, UnknownTargetError
from reconciler.reconcile.review_actions import ReviewAction
from reconciler.review.actions import apply_review_action
from reconciler.review.drafts import DraftReview
from reconciler.settings import Settings
from tests.properties.bare_repository import BareRepository, Files
from tests.properties.edits import EDITS, Edit
from tests.support.world import CLUSTERS, REGIONS, catalog, config_map, injected_set, package, repository, variant

HEADS, TAGS = "refs/heads/", "refs/tags/"
STATE, KEPT = "refs/reconciler/state/", "refs/reconciler/kept/"
TEMPLATES = ("drafts/{repository}", "drafts/{repository}/{package}")
# each cluster may have all of them; a set creates the gateway
WISHED = ("logs", "metrics")
PACKAGES = ("gateway", *WISHED)
UPSTREAM_OF = {"gateway": "gateway", "logs": "metrics", "metrics": "metrics"}
_TOKEN = re.compile(rb"tok\d+x")
_LATER = 1_100_000_000


class KilledError(Exception):
    """A daemon was killed at this point of a pass."""


class _Meddled(PushPublisher):
    """Publisher that first runs other actions, or ends the process."""

    def __init__(self, push: PushPublisher) -> None:
        vars(self).update(vars(push))
        self.before: list[Callable[[], object]] = []
        self.dies = ""

    def publish(self, remote: Remote, written: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
        while self.before:
            self.before.pop()()
        self._live("publish")
        return super().publish(remote, written)

    def push_tags(self, remote: Remote, written: Sequence[WrittenPlan]) -> TagResult:
        self._live("tag")
        return super().push_tags(remote, written)

    def push_status(self, plan: FleetPlan, remotes: Remotes) -> PushOutcome:
        self._live("finish")
        return super().push_status(plan, remotes)

    def _live(self, where: str) -> None:
        if self.dies == where:
            raise KilledError(where)


class Daemon:
    """One service with its own cache and its own memory."""

    def __init__(self, settings: Settings, config: Path, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._config = config
        self._clock = clock
        self.restart()

    def restart(self, *, forgets: bool = False) -> None:
        """Start a new process, with or without the cache."""
        if forgets:
            shutil.rmtree(self._settings.cache, ignore_errors=True)
        self.parts: Services = build_services(self._settings, str(self._config), clock=self._clock)
        self._publisher = _Meddled(build_push_publisher(self._settings))
        self._passes = PassRunner(self.parts.source, self.parts.remotes, self.parts.pass_services, self._publisher)

    def run(self, before: Sequence[Callable[[], object]] = (), dies: str = "") -> int:
        """Run a pass. Before its push, run other actions or end the process. Return the number of renders."""
        self._publisher.before, self._publisher.dies = [*before], dies
        try:
            self._passes.run()
        except KilledError:
            self.restart()
            return -1
        finally:
            self._publisher.before, self._publisher.dies = [], ""
        pass_summary = self._passes.summary
        return 0 if pass_summary.is_skipped else pass_summary.counts["renders"]

    @property
    def finding_texts(self) -> list[str]:
        """Return the findings of the last pass as text."""
        return [f"{finding.code}: {finding.message}" for finding in self._passes.summary.findings]


@dataclass(frozen=True)
class Look:
    """The fleet at one moment."""

    repo: BareRepository
    refs: Mapping[str, str]

    def heads(self, *starts: str) -> dict[str, str]:
        """Return the refs with these prefixes."""
        return {name: commit for name, commit in self.refs.items() if name.startswith(starts)}

    def branch(self, cluster: str) -> str | None:
        """Return the head of a cluster branch."""
        return self.refs.get(f"{HEADS}clusters/{cluster}")

    def drafts(self, cluster: str) -> dict[str, str]:
        """Return the draft branches of a cluster, including removals."""
        starts = [f"{HEADS}{kind}/{cluster}" for kind in ("drafts", "removals")]
        return {
            name: commit
            for name, commit in self.refs.items()
            if any(name == start or name.startswith(f"{start}/") for start in starts)
        }

    @cached_property
    def tokens(self) -> frozenset[str]:
        """Return all tokens of users on a cluster branch, on a draft, or in a kept ref."""
        places = self.heads(f"{HEADS}clusters/", f"{HEADS}drafts/", f"{HEADS}removals/", KEPT)
        return frozenset().union(*(self.tokens_of(commit) for commit in places.values()))

    @cached_property
    def published_tokens(self) -> frozenset[str]:
        """Return all tokens of users on a cluster branch."""
        return frozenset().union(*(self.tokens_of(head) for head in self.heads(f"{HEADS}clusters/").values()))

    def tokens_of(self, commit: str) -> frozenset[str]:
        """Return the tokens in the files of a commit. Quotes in status files do not count."""
        paths = ((path, blob) for path, blob in self.repo.files(commit).items() if not path.startswith(".reconciler/"))
        return frozenset(match.decode() for _, blob in paths for match in _TOKEN.findall(self.repo.read(blob)))

    def state(self, cluster: str) -> TargetState | None:
        """Return the recorded state of a cluster."""
        commit = self.refs.get(STATE + cluster)
        if commit is None:
            return None
        files = self.repo.files(commit)
        return parse_state({p: self.repo.read(b) for p, b in files.items() if not p.startswith("trees/")})


class ReviewWorld:
    """Two clusters in one repository, a catalog, a config folder, two daemons, and a user with a terminal.

    `packages` are the packages that any cluster may have. `declining` are the user actions that decline a draft. Without
    them, no draft counts as declined.
    """

    clusters: ClassVar[Sequence[str]] = CLUSTERS
    packages: ClassVar[Sequence[str]] = PACKAGES
    edits: ClassVar[Mapping[str, Edit]] = EDITS
    declining: ClassVar[frozenset[str]] = frozenset({"delete", "put_back", "revert", "force", "rebase", "lose_branch"})

    def __init__(self, folder: Path, template: str) -> None:
        self.folder = folder
        self.fleet = BareRepository(folder / "fleet.git")
        self.catalog = BareRepository(folder / "catalog.git")
        self.config = folder / "config"
        self.template = template
        self.undone: set[str] = set()
        self.now = 1_500_000_000
        self._count = 0
        self._daemons: dict[str, Daemon] = {}
        self._older: dict[str, list[str]] = {}
        self._gone: dict[str, str] = {}
        self._requested: dict[tuple[str, str], int] = {}
        self._declining = False

    @classmethod
    def new(cls, folder: Path, template: str) -> Self:
        """Create a fleet in which every package is requested and no pass has run."""
        folder.mkdir(parents=True)
        for name in ("fleet.git", "catalog.git"):
            BareRepository.new(folder / name)
        world = cls(folder, template)
        world.begin()
        return world

    def begin(self) -> None:
        """Release all packages, and request them on every cluster."""
        for name in ("gateway", "metrics"):
            for version in (1, 2, 3):
                self.release(name, version, version)
        self.write("catalog.yaml", catalog())
        self.write("set.yaml", injected_set("gateway", CLUSTERS))
        for item in CLUSTERS:
            self.write(f"clusters/{item}.yaml", repository(item))
            for name in WISHED:
                self.request_package(item, name)
        for region in REGIONS.values():
            self.region(region, "a")

    def copy(self) -> Path:
        """Copy the fleet without the private data of daemons. Return the folder of the copy."""
        folder = self.folder.with_name("copy")
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("cache-*"))
        return folder

    @contextmanager
    def replaced(self, copy: Path) -> Iterator[Self]:
        """Replace this fleet by a copy at the same path, and delete the copy at the end."""
        aside = self.folder.with_name("aside")
        self.folder.rename(aside)
        copy.rename(self.folder)
        twin = self.twin()
        try:
            yield twin
        finally:
            twin.close()
            shutil.rmtree(self.folder)
            aside.rename(self.folder)

    def twin(self) -> Self:
        """Return the fleet that is in this folder now, with new daemons."""
        twin = type(self)(self.folder, self.template)
        twin._declining, twin.undone, twin.now = self._declining, {*self.undone}, self.now
        return twin

    def close(self) -> None:
        """Stop its processes."""
        self.fleet.close()
        self.catalog.close()

    def look(self) -> Look:
        """Return the current refs of the fleet."""
        return Look(self.fleet, self.fleet.refs())

    def token(self) -> str:
        """Return a new unique token."""
        self._count += 1
        return f"tok{self._count}x"

    def ruled(self) -> str:
        """Return a token for a field that a rule decides. A pass may remove it."""
        self._count += 1
        return f"ruled{self._count}x"

    def happens(self, *what: tuple[Any, ...]) -> None:
        """Run actions. Each is the name of a method and its arguments."""
        for name, *arguments in what:
            self._declining |= name in self.declining or "drop" in arguments
            getattr(self, name)(*arguments)

    def draft(self, number: int) -> tuple[str, str]:
        """Return the cluster and the name of one of the open drafts, or "" if there is none."""
        drafts = self.drafts()
        return drafts[number % len(drafts)] if drafts else ("", "")

    def drafts(self) -> list[tuple[str, str]]:
        """Return the open drafts with their clusters."""
        look = self.look()
        return [(cluster, ref) for cluster in self.clusters for ref in look.drafts(cluster)]

    def package_on(self, ref: str, number: int) -> str:
        """Return one of the packages of a branch. Packages that differ from the cluster branch come first."""
        files = self.fleet.files(self.fleet.refs().get(ref))
        values = [name for name in self.packages if any(path.startswith(f"{name}/") for path in files)]
        return values[number % len(values)] if values else ""

    # changes by platform users

    def write(self, path: str, content: str | None) -> None:
        """Write a file of the config, or remove it."""
        target = self.config / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            target.write_text(content)
        else:
            target.unlink(missing_ok=True)

    def request_package(
        self, cluster: str, name: str, version: int = 1, extra: str = "", folder: str = "requests"
    ) -> None:
        """Request a package on a cluster. Its file is in one folder only."""
        self.withdraw_request(cluster, name)
        self._requested[cluster, name] = version
        text = variant(f"{name}-{cluster}", cluster, name, f"v{version}", UPSTREAM_OF.get(name, name), extra)
        self.write(f"{folder}/{cluster}-{name}.yaml", text)

    def withdraw_request(self, cluster: str, name: str) -> None:
        """Withdraw the request for a package."""
        self._requested.pop((cluster, name), None)
        for path in self.config.glob(f"*/{cluster}-{name}.yaml"):
            path.unlink()

    def select(self, clusters: Sequence[str], version: int) -> None:
        """Select the clusters of the gateway."""
        self.write("set.yaml", injected_set("gateway", clusters, f"v{version}"))

    def spoil(self) -> None:
        """Write a file with invalid YAML into the config."""
        self.write("spoiled.yaml", "kind: [\n")

    def mend(self) -> None:
        """Remove that file."""
        self.write("spoiled.yaml", None)

    def region(self, region: str, value: str) -> None:
        """Set the value that is injected into the gateways of a region."""
        self.write(f"regions/{region}.yaml", config_map(f"region-{region}", api=value))

    def release(self, name: str, version: int, flavour: int) -> None:
        """Tag a package, possibly again. Flavors differ in values, in moved lines, and in the set of files."""
        more = {"settings": config_map("settings", level=str(flavour), size=str(flavour // 2), tail="end")}
        if flavour % 2:
            more["extra"] = config_map("extra", odd=str(flavour))
        if name == "gateway":
            more["endpoints"] = config_map("endpoints", "required", api="none")
        self._publish(name, version, package(name, replicas=1 + flavour % 3, image=f"{flavour}.0", **more))

    def _publish(self, name: str, version: int, files: Mapping[str, str]) -> None:
        head = self.catalog.refs().get(f"{HEADS}main")
        remaining = {p: b for p, b in self.catalog.files(head).items() if not p.startswith(f"{name}/")}
        remaining |= {f"{name}/{path}": self.catalog.write("blob", text.encode()) for path, text in files.items()}
        self._count += 1
        commit = self.catalog.commit(
            remaining, [head] if head else [], f"{name} {self._count}", 1_000_000_000 + self._count
        )
        self.catalog.point(f"{HEADS}main", commit)
        self.catalog.point(f"{TAGS}{name}/v{version}", commit)

    # changes by cluster users

    def seconds(self) -> int:
        """Return the date of a commit by a user."""
        return _LATER + self._count

    def change(self, ref: str, files: Files, *parents: str) -> str:
        """Commit these files on a branch. The default parent is the head of the branch."""
        self._count += 1
        parents = parents or (self.fleet.refs()[ref],)
        commit = self.fleet.commit(files, parents, f"by hand {self._count}", self.seconds())
        self.move(ref, commit)
        return commit

    def move(self, ref: str, commit: str | None) -> None:
        """Set a branch to another commit. A pass may lose tokens that this removes from a cluster branch."""
        before = self.look().published_tokens
        self.fleet.point(ref, commit)
        after = self.look().published_tokens
        self.undone = (self.undone | (before - after)) - after

    def edit(self, where: str, number: int, how: str) -> None:
        """Change one thing on a draft (`where` is "draft") or on a cluster branch, as users do."""
        ref = (
            self.draft(number)[1]
            if where == "draft"
            else f"{HEADS}clusters/{self.clusters[number % len(self.clusters)]}"
        )
        name, head = self.package_on(ref, number), self.fleet.refs().get(ref)
        files = self.fleet.files(head)
        changed = (
            {**files, **self.edits[how](self, files, name)} if head and (name or how.startswith("beside")) else files
        )
        if changed != files:
            self.change(ref, {path: blob for path, blob in changed.items() if blob})

    def blob(self, text: str) -> str:
        """Write a file's content."""
        return self.fleet.write("blob", text.encode())

    def text(self, blob: str) -> str:
        """Return a file's content."""
        return self.fleet.read(blob).decode()

    def merge_and_delete(self, number: int, how: str) -> None:
        """Merge a complete draft and delete it, as forges do."""
        _, draft = self.draft(number)
        if self.merge(number, how):
            self.move(draft, None)

    def merge(self, number: int, how: str) -> bool:
        """Merge the head or an older commit of a draft in one of several ways. Return False if Git would stop."""
        refs, (cluster, draft) = self.fleet.refs(), self.draft(number)
        ref, head = f"{HEADS}clusters/{cluster}", refs.get(draft)
        branch = refs.get(ref)
        if how == "older" and draft in self._older:
            head, how = self._older[draft][number % len(self._older[draft])], ("merge", "squash")[number % 2]
        if head is None or branch is None or head in self.fleet.ancestors(branch):
            return False
        if how == "fast-forward" and branch in self.fleet.ancestors(head):
            self.move(ref, head)
            return True
        if how in ("rebase", "pick"):
            commits = self.fleet.beyond(head, branch)
            picked = commits if how == "rebase" else commits[number % len(commits) :][:1] if commits else []
            return self._replay(ref, branch, picked)
        files = self.fleet.merged(branch, head)
        if files is None or how not in ("merge", "squash"):
            return False
        self.change(ref, files, branch, *([head] if how == "merge" else []))
        return True

    def _replay(self, ref: str, onto: str, commits: Sequence[str]) -> bool:
        head = onto
        for commit in commits:
            files = self.fleet.replayed(self.fleet.parents(commit)[0], commit, self.fleet.files(head))
            if files is None:
                return False
            if files != self.fleet.files(head):
                self._count += 1
                message = self.fleet.read(commit).decode().partition("\n\n")[2].rstrip("\n")
                head = self.fleet.commit(files, [head], message, self.seconds())
        self.move(ref, head)
        return head != onto

    def take(self, number: int) -> None:
        """Commit the folder of a package from the draft, without its status file."""
        refs, (cluster, draft) = self.fleet.refs(), self.draft(number)
        name = self.package_on(draft, number)
        ref = f"{HEADS}clusters/{cluster}"
        if ref in refs and draft in refs:
            theirs = _inside(self.fleet.files(refs[draft]), f"{name}/")
            rest = _outside(self.fleet.files(refs[ref]), f"{name}/")
            if theirs and {**rest, **theirs} != self.fleet.files(refs[ref]):
                self.change(ref, {**rest, **theirs})

    def revert(self, cluster: str) -> None:
        """Revert the last commit of a cluster branch, or the changes of a merge."""
        ref = f"{HEADS}clusters/{cluster}"
        head = self.fleet.refs().get(ref)
        if head and (parents := self.fleet.parents(head)):
            self.change(ref, self.fleet.files(parents[0]))

    def update_branch(self, number: int) -> None:
        """Merge the cluster branch into a draft, as forges offer to."""
        refs, (cluster, draft) = self.fleet.refs(), self.draft(number)
        branch = refs.get(f"{HEADS}clusters/{cluster}")
        if draft not in refs or branch is None or branch in self.fleet.ancestors(refs[draft]):
            return
        files = self.fleet.merged(refs[draft], branch)
        if files is not None:
            self.change(draft, files, refs[draft], branch)

    def rebase(self, number: int) -> None:
        """Rebase a draft onto the cluster branch, and push it with force."""
        refs, (cluster, draft) = self.fleet.refs(), self.draft(number)
        branch = refs.get(f"{HEADS}clusters/{cluster}")
        if draft in refs and branch:
            self._replay(draft, branch, self.fleet.beyond(refs[draft], branch))

    def put_back(self, number: int) -> None:
        """Remove a package from a draft: reset its folder and status file to those of the cluster branch."""
        refs, (cluster, draft) = self.fleet.refs(), self.draft(number)
        branch = refs.get(f"{HEADS}clusters/{cluster}")
        if draft in refs and branch:
            name = self.package_on(draft, number)
            paths = (f"{name}/", f".reconciler/{name}.yaml")
            files, theirs = self.fleet.files(refs[draft]), _inside(self.fleet.files(branch), *paths)
            if _inside(files, *paths) != theirs:
                self.change(draft, {**_outside(files, *paths), **theirs})

    def force(self, number: int) -> None:
        """Push an older head to a draft with force."""
        _, draft = self.draft(number)
        if self._older.get(draft):
            self.move(draft, self._older[draft][number % len(self._older[draft])])

    def delete(self, number: int) -> None:
        """Delete a draft."""
        _, ref = self.draft(number)
        if ref in self.fleet.refs():
            self.move(ref, None)

    def lose_branch(self, cluster: str) -> None:
        """Rename a cluster branch, or rename it back."""
        ref = f"{HEADS}clusters/{cluster}"
        if cluster in self._gone:
            self.move(ref, self._gone.pop(cluster))
        elif (head := self.fleet.refs().get(ref)) and STATE + cluster in self.fleet.refs():
            self._gone[cluster] = head
            self.move(ref, None)

    def lose_state(self, cluster: str) -> None:
        """Delete the recorded state of a cluster."""
        # a cluster without branch and state is a new cluster
        if STATE + cluster in self.fleet.refs() and cluster not in self._gone:
            self.fleet.point(STATE + cluster, None)

    def by_command(self, words: str, number: int, whole: bool) -> None:
        """Propose, approve, reject or drop a package or all packages of a cluster, as a reviewer."""
        cluster, draft = self.draft(number)
        place = TargetReference(cluster, "" if whole else self.package_on(draft, number))
        if not draft:
            return
        before = self.look().published_tokens
        parts = self.daemon("reviewer").parts
        verb: Any = words.partition(" ")[0]
        act = ReviewAction(verb, ("Grace", "grace@example.com"), should_approve_unproposed=words.endswith("at once"))
        with parts.remotes as remotes, suppress(UnknownTargetError):
            apply_review_action(
                DraftReview(parts.source, remotes, parts.pass_services),
                ReviewSelection((place,), should_include_removals=True),
                act,
            )
        after = self.look().published_tokens
        self.undone = (self.undone | (before - after)) - after

    # passes of daemons, and their invariants

    def daemon(self, name: str) -> Daemon:
        """Return the daemon, or the user with a cache, of this name."""
        if name not in self._daemons:
            settings = {
                "fleet": {"url": str(self.fleet.folder)},
                "cache": str(self.folder / f"cache-{name}"),
                "drafts": {"branch": self.template},
                "git": {"revision_tags": "all"},
                # one of these few packages exceeds the default share that one pass may delete
                "guards": {"max_delete_percent": 100},
            }
            self._daemons[name] = Daemon(Settings.model_validate(settings), self.config, lambda: self.now)
        return self._daemons[name]

    def run(self, name: str, meddle: Callable[[], object] | None = None, dies: str = "") -> bool:
        """Run a pass of one daemon and check the invariants. Return whether it changed nothing.

        `meddle` runs between the reads and the pushes of the pass.
        """
        start = before = self.look()

        def interrupt() -> None:
            nonlocal before
            if meddle:
                meddle()
            before = self.look()

        renders = self.daemon(name).run([interrupt], dies)
        after = self.look()
        self._check(start, before, after)
        for ref in after.heads(f"{HEADS}drafts/", f"{HEADS}removals/"):
            older = self._older.setdefault(ref, [])
            if after.refs[ref] not in older:
                older.append(after.refs[ref])
        return renders == 0 and start.refs == after.refs

    def settle(self, names: Sequence[str] = ("first", "second")) -> None:
        """Run passes until one changes nothing. A pass of another new process must change nothing, too."""
        for _ in range(4):
            if self.run(names[0]):
                break
        else:
            raise AssertionError(f"each pass has changes: {self.daemon(names[0]).finding_texts}")
        self.daemon(names[1]).restart()
        assert self.run(names[1]), f"another daemon has changes: {self.daemon(names[1]).finding_texts}"
        self._check_outcomes()

    def _check_outcomes(self) -> None:
        """Check that the packages with outcome drafted or published exist with the requested version."""
        look = self.look()
        for cluster in self.clusters:
            state = look.state(cluster)
            for name, record in state.packages.items() if state and look.branch(cluster) else ():
                kind = record.outcome.get("kind", "")
                where = look.branch(cluster) if kind.startswith("published") else None
                where = look.refs[HEADS + record.draft_branch] if kind == "drafted" else where
                if where is None:
                    continue
                files = self.fleet.files(where)
                assert self.fleet.subtree(where, name) == record.desired_tree, (
                    f"{cluster}/{name} differs from the desired tree"
                )
                if version := self._requested.get((cluster, name)):
                    lock = self.text(files[f"{name}/Kptfile"]).partition("upstreamLock:")[2]
                    assert f"/v{version}\n" in lock, f"{cluster}/{name} is not at v{version}"

    def compare(self) -> None:
        """Check that an equal fleet without caches gets the same refs."""
        copy = self.copy()
        self.run("first")
        refs = self.fleet.refs()
        with self.replaced(copy) as twin:
            twin.run("first")
            assert refs == twin.fleet.refs()

    def _check(self, start: Look, before: Look, after: Look) -> None:
        lost = before.tokens - after.tokens - self.undone
        assert not lost, f"lost: {sorted(lost)}"
        _check_refs(before, after)
        for cluster in self.clusters:
            _check_cluster(cluster, self.packages, start, before, after)
            self._check_numbers(cluster, before, after)

    def _check_numbers(self, cluster: str, before: Look, after: Look) -> None:
        was, now = before.state(cluster), after.state(cluster)
        if now is None:
            return
        tagged = {name: _highest_tag(before, cluster, name) for name in self.packages}
        for name, record in now.packages.items():
            known = was.packages.get(name) if was else None
            # after the loss of a state, tags give the numbers of the requested packages
            least = known.last_revision if known else tagged[name] if was is None else 0
            assert record.last_revision >= least, (
                f"{cluster}/{name} was at revision {least}, and is at {record.last_revision}"
            )
            if known:
                assert record.last_workspace >= known.last_workspace
                commits = {
                    published_revision.number: published_revision.commit for published_revision in known.revisions
                }
                second_result = {
                    published_revision.number: published_revision.commit
                    for published_revision in record.revisions
                    if published_revision.number in commits
                }
                assert all(commits[number] == commit for number, commit in second_result.items())
            declined = {*record.declined_trees} - {*(known.declined_trees if known else ())}
            assert self._declining or not declined, f"no user declined {cluster}/{name}"
        if was:
            assert not was.packages.keys() - now.packages.keys(), "recorded packages are missing"


def _highest_tag(look: Look, cluster: str, name: str) -> int:
    start = f"{TAGS}{cluster}/{name}/v"
    return max((int(ref.removeprefix(start)) for ref in look.refs if ref.startswith(start)), default=0)


def _check_refs(before: Look, after: Look) -> None:
    """Check that a pass publishes nothing, moves no tag, and changes no ref of others."""
    for ref in {*before.refs, *after.refs}:
        was, now = before.refs.get(ref), after.refs.get(ref)
        if was == now:
            continue
        if ref.startswith(f"{HEADS}clusters/"):
            assert was is None, f"{ref} was moved by a pass"
            assert now
            assert not after.repo.files(now), f"{ref} was made with something on it"
        elif ref.startswith((TAGS, KEPT)):
            assert was is None, f"{ref} was moved"
        elif ref.startswith(f"{HEADS}proposed/"):
            assert now is None, f"{ref} was moved by a pass"
        else:
            ours = (f"{HEADS}drafts/", f"{HEADS}removals/", f"{HEADS}reconciler/status", STATE)
            assert ref.startswith(ours), f"{ref} does not belong to the daemon"


def _check_cluster(cluster: str, packages: Sequence[str], start: Look, before: Look, after: Look) -> None:
    branch = before.branch(cluster) or after.branch(cluster)
    state = after.state(cluster)
    if branch is None or state is None:
        return
    published = after.repo.files(branch)
    offered: dict[str, str] = {}
    for ref, head in after.drafts(cluster).items():
        was = before.refs.get(ref)
        files = after.repo.files(head)
        if was != head:
            _check_foreign(
                ref, packages, files, [published, before.repo.files(was), before.repo.files(start.refs.get(ref))]
            )
            assert before.branch(cluster) is not None or start.branch(cluster) is None, f"{ref} moved without a branch"
        draft = state.drafts.get(ref.removeprefix(HEADS))
        if draft is None or draft.is_removal or draft.head != head:
            continue
        base = after.repo.files(draft.base)
        for name in () if draft.is_edited else packages:
            if _inside(files, f"{name}/") not in (_inside(base, f"{name}/"), _inside(published, f"{name}/")):
                assert offered.setdefault(name, ref) == ref, f"{cluster}/{name} is on {offered[name]} and {ref}"
                assert f".reconciler/{name}.yaml" in files, f"{cluster}/{name} has no status file on {ref}"


def _check_foreign(ref: str, packages: Sequence[str], files: Files, known: Sequence[Files]) -> None:
    """Check that files outside of packages on a draft are unchanged or equal to those of the cluster branch."""
    places = tuple(f"{name}/" for name in packages) + tuple(f".reconciler/{name}.yaml" for name in packages)
    for path in {path for item in (files, *known) for path in item}:
        if not path.startswith(places):
            assert files.get(path) in [item.get(path) for item in known], (
                f"{path} on {ref} does not belong to the daemon"
            )


def _inside(files: Files, *places: str) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if path.startswith(places)}


def _outside(files: Files, *places: str) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if not path.startswith(places)}
