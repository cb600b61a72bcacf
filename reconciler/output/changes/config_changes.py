"""Finds the config objects that differ between two configs, and the packages that each difference affects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Literal

from reconciler.api.greenhouse import GROUP
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.provenance import diff_values
from reconciler.controllers.results import Variant
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.changes.fields import find_field_changes
from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.json_data import mask_secrets
from reconciler.output.status.package_status import list_object_dependencies
from reconciler.output.text import to_one_line
from reconciler.planning.attribution.impact import PackageImpact
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.model.outcomes import Draft, PackageOutcome

_CLUSTER_KINDS = frozenset({"Repository", "Cluster", "FederatedCluster"})
_POLICY_KINDS = frozenset({"OverridePolicy", "ClusterOverridePolicy", "PropagationPolicy", "ClusterPropagationPolicy"})
# Kind, namespace and name of an object. For cluster-scoped objects, the namespace is `default`.
_LookupKey = tuple[str, str, str]


@dataclass(frozen=True)
class ConfigChange:
    """One config object that was added, removed or changed.

    For an added object, `before` is None. For a removed object, `after` is None.
    """

    key: ObjectKey
    before: ConfigObject | None
    after: ConfigObject | None

    @property
    def change_type(self) -> Literal["added", "removed", "changed"]:
        """The type of the change."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"

    @property
    def file(self) -> str:
        """The file that contains the object. For a removed object, the file that contained it."""
        return self._last_version.file

    @property
    def line(self) -> int:
        """The line of the first changed field. For an added or removed object, the line of the object."""
        manifest = self._last_version
        change = next(diff_values(self.before.data, self.after.data, ()), None) if self.before and self.after else None
        path = change[0] if change else ()
        while path and get_value(manifest.data, path) is ABSENT:
            path = path[:-1]
        return manifest.location_of(path).line if path else manifest.location.line

    @property
    def _last_version(self) -> ConfigObject:
        manifest = self.after or self.before
        assert manifest, "a changed object must exist in at least one of the two configs"
        return manifest

    def format_field_lines(self, limit: int) -> tuple[str, ...]:
        """Return at most `limit` changed fields, one per line. Only changed objects have such lines."""
        if not (self.before and self.after):
            return ()
        before = mask_secrets(self.before.data)
        after = mask_secrets(self.after.data, self.before.data, should_mark_changes=True)
        changes = islice(find_field_changes(before, after), limit)
        # Omit all values of Plugins and presets, because an option can be a secret, and its path does not show this.
        is_hidden = self.key.group == GROUP
        return tuple(change.path_text if is_hidden else change.format_line() for change in changes)

    @property
    def summary(self) -> str:
        """The change on one line, e.g. `Addon metrics changed (addons.yaml)`."""
        return to_one_line(f"{self.key} {self.change_type} ({self.file})")


def compare_configs(
    before: Mapping[ObjectKey, ConfigObject], after: Mapping[ObjectKey, ConfigObject]
) -> tuple[ConfigChange, ...]:
    """Return the config objects that differ, sorted by key. Ignore moves to another file or line."""
    pairs = ((key, before.get(key), after.get(key)) for key in sorted({*before, *after}))
    return tuple(ConfigChange(key, old, new) for key, old, new in pairs if not _is_equal(old, new))


def _is_equal(before: ConfigObject | None, after: ConfigObject | None) -> bool:
    # Compare identities first, because both configs share the Python objects of unchanged files.
    return before is after or (before is not None and after is not None and before.digest == after.digest)


class ConfigChangeAttribution:
    """Finds the config changes that change a package."""

    def __init__(self, changes: Iterable[ConfigChange]) -> None:
        self._by_key = {change.key: change for change in changes}
        self._by_text = {key.reference: change for key, change in self._by_key.items()}
        self._by_lookup: dict[_LookupKey, list[ConfigChange]] = {}
        for key, change in self._by_key.items():
            self._by_lookup.setdefault(_build_lookup_key(key.kind, key.namespace, key.name), []).append(change)

    def find_causes(self, effect: PackageImpact, changes: PackageChanges | None) -> tuple[ConfigChange, ...]:
        """Return the config changes that caused the new result of a package.

        These are the changes of the dependencies in `effect.causes`. If there are no such changes, return the changes
        of the owner, the cluster, the upstream, the resources and the inputs of the package.
        """
        if not self._by_key:
            return ()
        direct = {change.key: change for cause in effect.causes for change in self._find_by_cause(cause, effect)}
        causes = direct or {change.key: change for change in self._find_related(effect, changes)}
        return tuple(causes[key] for key in sorted(causes))

    def find_inputs(self, package: ReRenderedPackage) -> tuple[ConfigChange, ...]:
        """Return the config changes of the owner and of all objects that the render of a package depends on."""
        owner = package.owner
        changes = [self._by_key[key] for key in ((owner.key, owner.parent) if owner else ()) if key in self._by_key]
        names = [(entry.kind, entry.namespace, entry.name) for entry in list_object_dependencies(package.trace)]
        for name in (*names, *(_list_sources(package.variant) if package.variant else ())):
            changes += self._by_lookup.get(_build_lookup_key(*name), ())
        by_key = {change.key: change for change in changes}
        return tuple(by_key[key] for key in sorted(by_key))

    def _find_by_cause(self, cause: str, effect: PackageImpact) -> Iterator[ConfigChange]:
        match [word.replace("%20", " ").replace("%25", "%") for word in cause.split(" ")]:
            case ["object" | "policy", api_version, kind, namespace, name, *_]:
                yield from self._find_object(split_api_version(api_version)[0], kind, namespace, name)
            case ["kind", group, kind]:
                yield from (change for key, change in self._by_key.items() if (key.group, key.kind) == (group, kind))
            case ["cluster", name]:
                yield from self._find_cluster(name)
            case ["selectors" | "rollout", *_]:
                yield from (change for key, change in self._by_key.items() if key.kind in _POLICY_KINDS)
            case [text] if text in self._by_text:
                yield self._by_text[text]
            case ["variant" | "upstream"]:
                yield from self._find_owners(effect)

    def _find_object(self, group: str, kind: str, namespace: str, name: str) -> Iterator[ConfigChange]:
        candidates = self._by_lookup.get(_build_lookup_key(kind, namespace, name), ())
        yield from (change for change in candidates if change.key.group == group)

    def _find_cluster(self, name: str) -> Iterator[ConfigChange]:
        yield from (change for key, change in self._by_key.items() if key.kind in _CLUSTER_KINDS and key.name == name)

    def _find_owners(self, effect: PackageImpact) -> Iterator[ConfigChange]:
        for owner in (effect.before.owner, effect.after.owner):
            for key in (owner.key, owner.parent) if owner else ():
                if key in self._by_key:
                    yield self._by_key[key]

    def _find_related(self, effect: PackageImpact, changes: PackageChanges | None) -> Iterator[ConfigChange]:
        """Yield the config changes of the owner, cluster, upstream, resources and inputs of a package."""
        yield from self._find_owners(effect)
        if effect.target:
            yield from self._find_cluster(effect.target.name)
        for outcome in (effect.before.outcome, effect.after.outcome):
            if outcome:
                yield from self._find_sources(outcome)
        # A changed resource of the package can be a copy of a config object with the same key. Yield the change of this
        # config object.
        keys = (change.key for change in (changes.objects if changes else ()))
        yield from (self._by_key[key] for key in keys if key in self._by_key)

    def _find_sources(self, outcome: PackageOutcome) -> Iterator[ConfigChange]:
        variant = outcome.variant
        for upstream in variant.upstream.packages if variant.upstream else ():
            key = ObjectKey(PORCH_GROUP, "Repository", upstream.namespace, upstream.repository)
            if key in self._by_key:
                yield self._by_key[key]
        inputs = outcome.rendered.input_files if isinstance(outcome, Draft) else ()
        for kind, namespace, name in (*inputs, *_list_sources(variant)):
            yield from self._by_lookup.get(_build_lookup_key(kind, namespace, name), ())


def _list_sources(variant: Variant) -> Iterator[_LookupKey]:
    for source in variant.provenance.list_objects() if variant.provenance else ():
        yield source["kind"], source.get("namespace", ""), source["name"]


def _build_lookup_key(kind: str, namespace: str, name: str) -> _LookupKey:
    return kind, namespace or DEFAULT_NAMESPACE, name
