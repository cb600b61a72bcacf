"""Changes of the config: its objects that are different, and which of them a package is different for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.identity import ObjectKey, split_api_version
from reconciler.planning.impact import Effect
from reconciler.planning.outcome import Draft, Outcome
from reconciler.reporting.causes import object_words
from reconciler.reporting.changes import Changes
from reconciler.reporting.status_file import told
from reconciler.reporting.values import one_line
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE, PORCH_GROUP, ConfigObject

_CLUSTER_KINDS = frozenset({"Repository", "Cluster", "FederatedCluster"})
_SELECTING = frozenset({"OverridePolicy", "ClusterOverridePolicy", "PropagationPolicy", "ClusterPropagationPolicy"})


@dataclass(frozen=True)
class ConfigChange:
    """One object of the config that was added, removed or changed; `file` is where it stands, or stood."""

    key: ObjectKey
    how: Literal["added", "removed", "changed"]
    file: str

    @property
    def words(self) -> str:
        """The change on one line: `Addon metrics changed (addons.yaml)`."""
        return one_line(f"{object_words(self.key)} {self.how} ({self.file})")

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return told({**self.key.as_data(), "change": self.how, "file": self.file})


def config_changes(
    before: Mapping[ObjectKey, ConfigObject], after: Mapping[ObjectKey, ConfigObject]
) -> tuple[ConfigChange, ...]:
    """Return the objects that say something else, by identity; one that only moved says the same."""
    return tuple(change for key in sorted({*before, *after}) if (change := _change(before.get(key), after.get(key))))


def _change(before: ConfigObject | None, after: ConfigObject | None) -> ConfigChange | None:
    if before is None:
        return ConfigChange(after.key, "added", after.file) if after else None
    if after is None:
        return ConfigChange(before.key, "removed", before.file)
    # what stands as it stood is the same object
    if before is after or before.digest == after.digest:
        return None
    return ConfigChange(after.key, "changed", after.file)


# what identifies an object for a question: namespaces are asked for as if in the default where there is none
_Asked = tuple[str, str, str]


class Culprits:
    """Finds which changes of the config a package is different for."""

    def __init__(self, changes: Iterable[ConfigChange]) -> None:
        self._by_key = {one.key: one for one in changes}
        self._by_text = {str(key): one for key, one in self._by_key.items()}
        self._asked: dict[_Asked, list[ConfigChange]] = {}
        for key, one in self._by_key.items():
            self._asked.setdefault(_asked(key.kind, key.namespace, key.name), []).append(one)

    def of(self, effect: Effect, changes: Changes | None) -> tuple[ConfigChange, ...]:
        """Return the changes that a package looked at: by what moved of its render, else by all that it is made of."""
        if not self._by_key:
            return ()
        moved = {one.key: one for cause in effect.causes for one in self._by_cause(cause, effect)}
        found = moved or {one.key: one for one in self._near(effect, changes)}
        return tuple(found[key] for key in sorted(found))

    def _by_cause(self, cause: str, effect: Effect) -> Iterator[ConfigChange]:
        match [word.replace("%20", " ").replace("%25", "%") for word in cause.split(" ")]:
            case ["object" | "policy", api_version, kind, namespace, name, *_]:
                yield from self._named(split_api_version(api_version)[0], kind, namespace, name)
            case ["kind", group, kind]:
                yield from (one for key, one in self._by_key.items() if (key.group, key.kind) == (group, kind))
            case ["cluster", name]:
                yield from self._cluster(name)
            case ["selectors" | "rollout", *_]:
                yield from (one for key, one in self._by_key.items() if key.kind in _SELECTING)
            case [fact] if fact in self._by_text:
                yield self._by_text[fact]
            case ["variant" | "upstream"]:
                yield from self._owners(effect)

    def _named(self, group: str, kind: str, namespace: str, name: str) -> Iterator[ConfigChange]:
        found = self._asked.get(_asked(kind, namespace, name), ())
        yield from (one for one in found if one.key.group == group)

    def _cluster(self, name: str) -> Iterator[ConfigChange]:
        yield from (one for key, one in self._by_key.items() if key.kind in _CLUSTER_KINDS and key.name == name)

    def _owners(self, effect: Effect) -> Iterator[ConfigChange]:
        for owner in (effect.before.owner, effect.after.owner):
            for key in (owner.key, owner.set) if owner else ():
                if key in self._by_key:
                    yield self._by_key[key]

    def _near(self, effect: Effect, changes: Changes | None) -> Iterator[ConfigChange]:
        """Yield what a package is made of and for: its owner, its cluster, its upstream, its resources, its sources."""
        yield from self._owners(effect)
        if effect.destination:
            yield from self._cluster(effect.destination.name)
        for one in (effect.before.outcome, effect.after.outcome):
            if one:
                yield from self._sources(one)
        # what is placed as it stands in the config is the very object
        keys = (each.key for each in (changes.objects if changes else ()))
        yield from (self._by_key[key] for key in keys if key in self._by_key)

    def _sources(self, outcome: Outcome) -> Iterator[ConfigChange]:
        variant = outcome.variant
        if variant.upstream:
            key = ObjectKey(PORCH_GROUP, "Repository", variant.upstream.namespace, variant.upstream.repository)
            yield from (self._by_key[one] for one in (key,) if one in self._by_key)
        asked = outcome.rendered.inputs if isinstance(outcome, Draft) else ()
        for kind, namespace, name in (*asked, *_made_of(variant)):
            yield from self._asked.get(_asked(kind, namespace, name), ())


def _made_of(variant: Variant) -> Iterator[tuple[str, str, str]]:
    for one in variant.provenance.objects() if variant.provenance else ():
        yield one["kind"], one.get("namespace", ""), one["name"]


def _asked(kind: str, namespace: str, name: str) -> _Asked:
    return kind, namespace or DEFAULT_NAMESPACE, name
