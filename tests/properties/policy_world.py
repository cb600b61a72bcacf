"""A test fleet with policies and placements: changes by users, and the invariants of each pass.

The module does not implement the rules again. A rule sets a mark that tests search for. A user writes such a mark
into fields that a rule decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from reconciler.planning.model.state import PackageRecord, TargetState, serialize_state
from tests.properties.bare_repository import Files
from tests.properties.edits import POLICY_EDITS, Edit
from tests.properties.review_world import HEADS, STATE, Look, ReviewWorld
from tests.support.policies import (
    ATTACHED,
    KUBEADMIRAL,
    PLACED_BY,
    PLACED_ON,
    labelled_package,
    metadata_of,
    policy,
    propagation,
)
from tests.support.world import CLUSTERS, catalog, config_map, package, repository

NAMESPACE = "shop"
SHOP, ROLES = f"resources/{NAMESPACE}", "resources/_cluster"
RESOURCES = ("web", "settings", "reader")
PLACED_BY_NAMESPACED = "kubeadmiral.io/propagation-policy-name"
# a cluster in the fleet repository, without a repository of its own
LODGER = "oslo"
MARKS: Mapping[str, tuple[str, str]] = {
    "nowhere": ("", ""),
    "one": ("berlin", ""),
    "two": ("berlin, oslo", ""),
    "all": ("*", ""),
    "by policy": ("", "spread"),
    "by both": ("lisbon", "spread"),
    "unknown": ("moon", ""),
    "invalid": ("berlin,", ""),
    "by a policy that is not there": ("", "gone"),
}
WAVES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "": (),
    "berlin first": ({"clusters": ["berlin"]},),
    "by ring": ({"clusterSelector": {"ring": "early"}}, {"clusters": ["lisbon"]}),
    "oslo last": ({"clusters": ["lisbon"]}, {"clusters": ["berlin"]}),
}
SOAK = 3600
_RULE = "ClusterOverridePolicy/_cluster/edge#mark"
_MARK = re.compile(rb"edge: \"?t(\d+)\b")
_RULED = re.compile(rb"ruled\d+x")
_SPOILT = "kind: [\n"


@dataclass(frozen=True)
class Edge:
    """The policy that packages refer to: the text of its rule, and the rollout waves of clusters."""

    text: int
    waves: str = ""
    soak: int = 0
    leaves_out: Sequence[str] = ()

    def write(self) -> str:
        """Return the policy."""
        rollout = {"waves": [*WAVES[self.waves]], **({"soak": f"{self.soak}s"} if self.soak else {})}
        mark = {
            "name": "mark",
            **({"targetClusters": {"excludeClusters": [*self.leaves_out]}} if self.leaves_out else {}),
            **({"rollout": rollout} if self.waves else {}),
            "overriders": {"annotations": [{"operator": "set", "value": {"edge": f"t{self.text}"}}]},
        }
        ring = {"overriders": {"labels": [{"operator": "set", "value": {"ring": "${cluster.labels.ring}"}}]}}
        return policy("edge", [mark, ring])

    def wave(self, cluster: str, rings: Mapping[str, str]) -> int:
        """Return the number of the wave of a cluster."""
        waves = WAVES[self.waves]
        for number, item in enumerate(waves):
            if cluster in item.get("clusters", ()) or item.get("clusterSelector") == {"ring": rings[cluster]}:
                return number
        return len(waves)


@dataclass(frozen=True)
class PassInput:
    """Config at the start of a pass. `edge` is None if that policy has no rule to roll out."""

    edge: Edge | None
    rings: Mapping[str, str]
    now: int
    is_spoilt: bool
    twice: frozenset[str] = frozenset()


class PolicyWorld(ReviewWorld):
    """Two clusters with repositories and one without, one package on both, and placed resources."""

    clusters: ClassVar[Sequence[str]] = (*CLUSTERS, LODGER)
    packages: ClassVar[Sequence[str]] = ("metrics", ROLES, SHOP)
    edits: ClassVar[Mapping[str, Edit]] = POLICY_EDITS

    def __init__(self, folder: Path, template: str) -> None:
        super().__init__(folder, template)
        self.edge: Edge | None = None
        self.rings: dict[str, str] = {}
        # all texts of the rule on any branch so far, by cluster and package
        self.texts: dict[tuple[str, str], set[int]] = {}
        self._blurred: dict[str, str] = {}
        self._pass_inputs: list[PassInput] = []

    def begin(self) -> None:
        """Release packages, place resources, and attach policies."""
        for version in (1, 2, 3):
            self.release("metrics", version, version)
        self.write("catalog.yaml", catalog())
        for item in self.clusters:
            self.label(item, "early" if item == "berlin" else "late")
        for item in CLUSTERS:
            self.request_package(item, "metrics")
        self.spread(("berlin", LODGER))
        for name in RESOURCES:
            self.place(name, "by policy", attached=True)
        self.override(Edge(1, "berlin first", SOAK))

    def twin(self) -> Self:
        """Return the fleet that is in this folder now, with new daemons."""
        twin = super().twin()
        twin.edge, twin.rings, twin._blurred = self.edge, {**self.rings}, {**self._blurred}
        twin.texts = {place: {*texts} for place, texts in self.texts.items()}
        return twin

    def seconds(self) -> int:
        """Return the current time as the date of a commit."""
        return self.now

    # changes by platform users

    def write(self, path: str, content: str | None) -> None:
        """Write a file of the config, or remove it."""
        self._blurred.pop(path, None)
        super().write(path, content)

    def release(self, name: str, version: int, flavour: int) -> None:
        """Tag a package, possibly again. Some flavors refer to a policy."""
        more = {"settings": config_map("settings", level=str(flavour), tail="end")}
        if flavour % 2:
            more["extra"] = config_map("extra", odd=str(flavour))
        replicas, image = 1 + flavour % 3, f"{flavour}.0"
        names_it = flavour % 3 != 0
        files = (
            labelled_package(name, "edge", replicas, image, **more)
            if names_it
            else package(name, replicas, image, **more)
        )
        self._publish(name, version, files)

    def label(self, cluster: str, ring: str) -> None:
        """Set the ring of a cluster."""
        self.rings[cluster] = ring
        if cluster == LODGER:
            text = f"apiVersion: {KUBEADMIRAL}\nkind: FederatedCluster\n"
            text += metadata_of(cluster, labels={"ring": ring}) + "spec: {}\n"
        else:
            text = repository(cluster).replace("labels: {", f"labels: {{ring: {ring}, ", 1)
        self.write(f"clusters/{cluster}.yaml", text)

    def override(self, edge: Edge | None) -> None:
        """Write or delete the policy that packages refer to."""
        self.edge = edge
        self.write("policies/edge.yaml", edge.write() if edge else None)

    def empty(self) -> None:
        """Remove all rules from the policy that packages refer to."""
        self.edge = None
        self.write("policies/edge.yaml", policy("edge", []))

    def tint(self, colour: str) -> None:
        """Write the policy that selects its resources; "" deletes it, "none" removes its rules."""
        rules = [{"overriders": {"labels": [{"operator": "set", "value": {"tint": colour}}]}}]
        selectors = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]
        text = policy("tint", [] if colour == "none" else rules, resourceSelectors=selectors)
        self.write("policies/tint.yaml", text if colour else None)

    def place(self, name: str, how: str, flavour: int = 1, attached: bool = False, folder: str = "placed") -> None:
        """Write a resource with placement marks into one folder, and delete its files in other folders."""
        self.unplace(name)
        self.write(f"{folder}/{name}.yaml", _resource(name, how, flavour, attached=attached))

    def unplace(self, name: str) -> None:
        """Delete a resource, and its copy."""
        for path in [*self.config.glob(f"*/{name}.yaml"), *self.config.glob(f"*/{name}-again.yaml")]:
            self.write(path.relative_to(self.config).as_posix(), None)

    def repeat(self, name: str) -> None:
        """Duplicate a resource in the config."""
        actual_paths = sorted(self.config.glob(f"*/{name}.yaml"))
        if actual_paths and actual_paths[0].read_text() != _SPOILT:
            self.write(f"placed/{name}-again.yaml", actual_paths[0].read_text())

    def spread(self, clusters: Sequence[str] | None, acknowledged: bool = False) -> None:
        """Write the policies that place resources on these clusters, or delete them."""
        hashes = {
            match
            for daemon in self._daemons.values()
            for entry in daemon.finding_texts
            for match in _HASH.findall(entry)
        }
        more = {"reconciler.dev/ack-deletions": ", ".join(sorted(hashes))} if acknowledged and hashes else {}
        spec = {"placement": [{"cluster": entry} for entry in clusters or ()]}
        for namespace in (NAMESPACE, ""):
            text = propagation("spread", spec, namespace, **more) if clusters is not None else None
            self.write(f"policies/spread-{namespace or 'everywhere'}.yaml", text)

    def blur(self, number: int) -> None:
        """Make a file of the config unreadable for a while."""
        paths = [path for path in sorted(self.config.rglob("*.yaml")) if path.read_text() != _SPOILT]
        target = paths[number % len(paths)]
        text = target.read_text()
        target.write_text(_SPOILT)
        self._blurred[target.relative_to(self.config).as_posix()] = text

    def clear(self) -> None:
        """Make all files readable again."""
        for path, text in {**self._blurred}.items():
            if (self.config / path).exists() and (self.config / path).read_text() == _SPOILT:
                self.write(path, text)
        self._blurred.clear()

    def single(self) -> None:
        """Delete the duplicates of all resources."""
        for name in RESOURCES:
            self.write(f"placed/{name}-again.yaml", None)

    def wait(self, seconds: int) -> None:
        """Advance the clock."""
        self.now += seconds

    # invariants

    def run(self, name: str, meddle: Callable[[], object] | None = None, dies: str = "") -> bool:
        """Run a pass of one daemon and check the invariants. Return whether it changed nothing."""
        twice = {path.name.removesuffix("-again.yaml") for path in self.config.glob("*/*-again.yaml")}
        edge = None if "policies/edge.yaml" in self._blurred else self.edge
        self._pass_inputs.append(PassInput(edge, {**self.rings}, self.now, bool(self._blurred), frozenset(twice)))
        try:
            return super().run(name, meddle, dies)
        finally:
            self._pass_inputs.pop()

    def settle(self, names: Sequence[str] = ("first", "second")) -> None:
        """Restore unreadable files and run passes until one changes nothing. The next one must change nothing, too."""
        self.clear()
        super().settle(names)
        self._check_emitted()

    def compare_with_full(self) -> None:
        """Check that an equal fleet gets the same result when all packages are rendered again."""
        self.settle()
        before = self.standing()
        with self.replaced(self.copy()) as twin:
            twin.upgrade()
            twin.settle()
            assert before == twin.standing()

    def roll_back(self) -> None:
        """Check that a published policy that is emptied later leaves no trace on any cluster branch."""
        self.empty()
        before = self._published()
        self.override(Edge(5))
        self._published()
        self.empty()
        # the daemon does not propose a declined draft again
        declined = {tree for cluster in self.clusters for tree in self._declined(cluster)}
        assert {
            place: tree for place, tree in before.items() if tree not in declined
        }.items() <= self._published().items()

    def _published(self) -> dict[str, str]:
        """Merge all drafts, and return the packages of all clusters afterwards."""
        self.settle()
        for number in range(len(self.drafts())):
            self.merge(number, "squash")
        self.settle()
        look = self.look()
        heads = {cluster: head for cluster in self.clusters if (head := look.branch(cluster))}
        places = [(cluster, head, name) for cluster, head in heads.items() for name in self.packages]
        return {f"{on}/{name}": tree for on, head, name in places if (tree := self.fleet.subtree(head, name))}

    def _declined(self, cluster: str) -> Sequence[str]:
        state = self.look().state(cluster)
        return (
            [tree for package_record in state.packages.values() for tree in package_record.declined_trees]
            if state
            else []
        )

    def standing(self) -> dict[str, object]:
        """Return the content of each ref: the tree of the status branch, which has a history, and states without traces.

        A package that is being removed keeps its trace, because it is not rendered.
        """
        look = self.look()
        states = {
            STATE + cluster: _with_traces(state, {}) for cluster in self.clusters if (state := look.state(cluster))
        }
        status = {ref: self.fleet.tree(head) for ref, head in look.heads(f"{HEADS}reconciler/status").items()}
        return {**look.refs, **states, **status}

    def upgrade(self) -> None:
        """Change all states as if another engine had rendered the packages, so that all are rendered again."""
        look = self.look()
        for cluster in self.clusters:
            if state := look.state(cluster):
                written = serialize_state(_with_traces(state, {"engine": "another"}))
                before = self.fleet.files(look.refs[STATE + cluster])
                files = {**before, **{path: self.fleet.write("blob", data) for path, data in written.items()}}
                if files != before:
                    self.fleet.point(STATE + cluster, self.fleet.commit(files, [], "another engine", 0))

    def _check(self, start: Look, before: Look, after: Look) -> None:
        super()._check(start, before, after)
        pass_input = self._pass_inputs[-1]
        for cluster in self.clusters:
            self._check_ruled(cluster, before, after)
            self._check_doubt(pass_input, cluster, before, after)
        if pass_input.edge and pass_input.edge.waves:
            self._check_waves(pass_input, pass_input.edge, (start, before), after)
        self._remember(before)
        self._remember(after)

    def _remember(self, look: Look) -> None:
        for cluster, name, files in self._offered(look):
            self.texts.setdefault((cluster, name), set()).update(_texts(look, files, name))

    def _offered(self, look: Look) -> Iterator[tuple[str, str, Files]]:
        """Yield the packages of every branch of a cluster."""
        for cluster in self.clusters:
            heads = [look.branch(cluster), *look.drafts(cluster).values()]
            for files in [look.repo.files(head) for head in heads if head]:
                for name in self.packages:
                    yield cluster, name, files

    def _check_ruled(self, cluster: str, before: Look, after: Look) -> None:
        """Check that the status file names each local change that a rule replaces."""
        published = before.repo.files(before.branch(cluster))
        for ref, head in after.drafts(cluster).items():
            was = before.refs.get(ref)
            if was == head or "/removals/" in f"/{ref}":
                continue
            files, old = after.repo.files(head), before.repo.files(was)
            for name in self.packages:
                here = _words(after, files, name)
                if _inside(files, name) and _inside(files, name) != _inside(old, name):
                    deleted = (_words(before, published, name) | _words(before, old, name)) - here
                    status = after.repo.read(files[f".reconciler/{name}.yaml"]).decode() if deleted else ""
                    assert all(entry in status for entry in deleted), (
                        f"{cluster}/{name}: {sorted(deleted)} is deleted without a report"
                    )

    def _check_doubt(self, pass_input: PassInput, cluster: str, before: Look, after: Look) -> None:
        """Check that nothing is deleted from a cluster or a package while the config is unreadable or ambiguous."""
        was, now = before.state(cluster), after.state(cluster)
        for name, record in now.packages.items() if was and now else ():
            known = was.packages.get(name) if was else None
            if known is None or not known.is_owned:
                continue
            if pass_input.is_spoilt:
                assert record.is_owned, f"{cluster}/{name} has no owner any more"
                assert known.removal or not record.removal, f"{cluster}/{name} is to go"
            # a package without draft and published version has no sources to compare
            if name.startswith("resources/") and (record.draft_version or record.published_version):
                values = self._sources(known) - self._sources(record)
                doubtful = (
                    values
                    if pass_input.is_spoilt
                    else {entry for entry in values if _name_of(entry) in pass_input.twice}
                )
                assert not doubtful, f"{cluster}/{name} has no {sorted(doubtful)} any more"

    def _sources(self, record: PackageRecord) -> set[str]:
        offer = record.draft_version or record.published_version
        return {name for _, name, _ in self.fleet.entries(offer.base)} if offer else set()

    def _check_waves(self, pass_input: PassInput, edge: Edge, looks: Sequence[Look], after: Look) -> None:
        """Check that no cluster gets the current text before earlier waves have had it for the soak time."""
        there = {
            on for look in looks for on, name, files in self._offered(look) if edge.text in _texts(look, files, name)
        }
        for cluster, name, files in self._offered(after):
            if edge.text not in _texts(after, files, name) - self.texts.get((cluster, name), set()):
                continue
            if cluster in there:
                continue
            wave = edge.wave(cluster, pass_input.rings)
            for other in self.clusters:
                if edge.wave(other, pass_input.rings) < wave:
                    behind = [self._behind(other, edge, pass_input.now, look, after) for look in looks]
                    assert not all(behind), f"{cluster}/{name} has t{edge.text} before {other}: {behind}"

    def _behind(self, cluster: str, edge: Edge, now: int, look: Look, after: Look) -> list[str]:
        """Return the packages of a cluster that the rule selects and that have not had its text for the soak time."""
        state, branch = after.state(cluster), look.branch(cluster)
        if state is None or cluster in edge.leaves_out:
            return []
        concerned = [
            name
            for name, package_record in state.packages.items()
            if _is_wanted(package_record) and any(_RULE in q for q in package_record.trace)
        ]
        since = {name: self._since(look, branch, name, edge.text) for name in concerned}
        return [name for name, entry in since.items() if entry is None or entry + edge.soak > now]

    def _since(self, look: Look, branch: str | None, name: str, text: int) -> int | None:
        """Return the date of the commit that brought a text to a cluster branch, if it is there."""
        none, commit = None, branch
        while commit and text in _texts(look, look.repo.files(commit), name):
            none = commit
            commit = next(iter(look.repo.parents(commit)), "")
        return int(re.findall(r"^committer .* (\d+) ", look.repo.read(none).decode(), re.M)[0]) if none else None

    def _check_emitted(self) -> None:
        """Check that generated fields override local changes in the desired packages."""
        look = self.look()
        for cluster in self.clusters:
            state = look.state(cluster)
            for name, record in state.packages.items() if state else ():
                if name == SHOP and record.desired_tree and record.is_owned:
                    texts = [
                        self.fleet.read(blob)
                        for path, blob in self.fleet.below(record.desired_tree).items()
                        if path == "configmap-settings.yaml"
                    ]
                    assert all(b"tail: end" in text for text in texts), (
                        f"{cluster}/{name}: an edit of an emitted field stays"
                    )


_HASH = re.compile(r'ack-deletions: "?([^"\s]+)')


def _resource(name: str, how: str, flavour: int, *, attached: bool) -> str:
    clusters, by = MARKS[how]
    namespace = "" if name == "reader" else NAMESPACE
    labels = {
        **({ATTACHED: "edge"} if attached else {}),
        **({PLACED_BY_NAMESPACED if namespace else PLACED_BY: by} if by else {}),
    }
    marks = metadata_of(name, namespace, labels=labels, annotations={PLACED_ON: clusters} if clusters else {})
    match name:
        case "web":
            spec = f"spec:\n  replicas: {flavour}\n  template:\n    spec:\n      containers: []\n"
            return f"apiVersion: apps/v1\nkind: Deployment\n{marks}{spec}"
        case "settings":
            return f"apiVersion: v1\nkind: ConfigMap\n{marks}data:\n  level: '{flavour}'\n  tail: end\n"
        case _:
            return f"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n{marks}rules: []\nlevel: {flavour}\n"


def _with_traces(state: TargetState, answers: Mapping[str, str]) -> TargetState:
    """Return the state with these answers in all traces that are not empty; {} removes all answers."""
    traces = {
        name: {**package_record.trace, **answers} if answers and package_record.trace else {}
        for name, package_record in state.packages.items()
    }
    return replace(
        state,
        packages={name: replace(package_record, trace=traces[name]) for name, package_record in state.packages.items()},
    )


def _is_wanted(record: PackageRecord) -> bool:
    return record.is_owned and record.outcome.get("kind") not in ("held", "proposed", "orphaned")


def _name_of(path: str) -> str:
    return path.rpartition("-")[2].removesuffix(".yaml")


def _inside(files: Files, name: str) -> dict[str, str]:
    return {path: blob for path, blob in files.items() if path.startswith(f"{name}/")}


def _texts(look: Look, files: Files, name: str) -> set[int]:
    return {int(match) for blob in _inside(files, name).values() for match in _MARK.findall(look.repo.read(blob))}


def _words(look: Look, files: Files, name: str) -> set[str]:
    return {match.decode() for blob in _inside(files, name).values() for match in _RULED.findall(look.repo.read(blob))}
