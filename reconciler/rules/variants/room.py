"""The room: from a catalog to the variants of its PackageVariants and PackageVariantSets (porch 5, 11)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from reconciler.krm.conditions import Condition
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding, Severity, Where
from reconciler.krm.identity import ObjectKey
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.rules.repository import Repositories, Repository
from reconciler.rules.variant import ConfigStatus, Owner, Place, RoomResult, Stalled, Upstream, Variant
from reconciler.rules.variants import status
from reconciler.rules.variants.guards import guard_deletions, name_conflict
from reconciler.rules.variants.model import PackageVariantSpec
from reconciler.rules.variants.model import Upstream as UpstreamSpec
from reconciler.rules.variants.mutate import mutation_of
from reconciler.rules.variants.naming import TargetKey
from reconciler.rules.variants.read_set import REVISION_SET_API_VERSION, read_package_variant_set
from reconciler.rules.variants.read_variant import VARIANT_API_VERSION, read_package_variant
from reconciler.rules.variants.sets import Expansion, GeneratedVariant, PackageVariantSet, SetFailure, expand_set
from reconciler.rules.variants.upstream import (
    Resolved,
    Unresolved,
    UpstreamRefs,
    UpstreamRepository,
    repository_missing,
    resolve,
    upstream_metadata,
)
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject
from reconciler.snapshot.objects import CommitId

_FIELD_PATH = re.compile(r"(?:metadata|spec)(?:\.[A-Za-z]+|\[\d+\])*")
_STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")


class UpstreamWorld(Protocol):
    """The upstream repositories of one pass."""

    def refs(self, repository: Repository) -> UpstreamRefs | str:
        """Return a Repository's refs, or why it cannot be read now."""
        ...

    def url(self, repository: Repository) -> str:
        """Return the address by which the pass knows the remote."""
        ...

    def seconds(self, repository: Repository, commit: CommitId) -> int:
        """Return a commit's date."""
        ...


@dataclass(frozen=True)
class Surroundings:
    """What the room needs besides the catalog.

    `children` are the places that each set's variants already own; `engine` changes when rendering may.
    """

    repositories: Repositories
    upstreams: UpstreamWorld
    children: Mapping[ObjectKey, Sequence[TargetKey]] = field(default_factory=dict)
    max_delete_percent: int = 30
    engine: str = ""


def variants_of(catalog: Catalog, around: Surroundings) -> RoomResult:
    """Return every variant that the config asks for, and what is wrong with the rest."""
    room = _Room(catalog, around)
    for one in catalog.of_kind(PORCH_GROUP, "PackageVariantSet"):
        room.take_set(one)
    for one in catalog.of_kind(PORCH_GROUP, "PackageVariant"):
        room.take_variant(one)
    return room.result()


class _Room:
    """Gathers results object by object; upstreams are resolved once each."""

    def __init__(self, catalog: Catalog, around: Surroundings) -> None:
        self._catalog = catalog
        self._around = around
        self._resolved: dict[tuple[str, UpstreamSpec], Resolved | Unresolved | str] = {}
        self._written = {one.key.name for one in catalog.of_kind(PORCH_GROUP, "PackageVariant")}
        self._variants: list[Variant] = []
        self._stalled: list[Stalled] = []
        self._statuses: list[ConfigStatus] = []
        self._findings: list[Finding] = []
        self._kept: set[ObjectKey] = set()

    def result(self) -> RoomResult:
        return RoomResult(
            tuple(self._variants),
            tuple(self._stalled),
            tuple(self._statuses),
            tuple(self._findings),
            frozenset(self._kept),
        )

    # single variants

    def take_variant(self, one: ConfigObject) -> None:
        """Turn a hand-written PackageVariant into a variant, or into the reason why it stalls."""
        owner = Owner(one.key, one.api_version)
        spec, errors, warnings = read_package_variant(one.data)
        self._findings += [_at_field(one, text, "Deprecated", Severity.WARNING) for text in warnings]
        if spec is None:
            findings = tuple(_at_field(one, text, "ValidationError") for text in errors)
            self._stalled.append(Stalled(owner, status.variant_invalid(errors), findings, _place_of(one)))
            return
        self._place(owner, spec, one.where)

    def _place(self, owner: Owner, spec: PackageVariantSpec, where: Where) -> None:
        namespace = owner.key.namespace
        place = Place(namespace, spec.downstream.repo, spec.downstream.package)
        downstream = self._around.repositories.get((namespace, spec.downstream.repo))
        if downstream is None:
            message = f'could not find Repository "{spec.downstream.repo}" in namespace "{namespace}"'
            self._stall(
                owner,
                place,
                "DownstreamNotFound",
                message,
                status.variant_stalled("DownstreamNotFound", message),
                where,
            )
            return
        found = self._resolve(namespace, spec.upstream)
        match found:
            case Unresolved():
                self._stall(owner, place, found.reason, found.message, status.variant_unresolved(found), where)
            case str():
                self._stall(owner, place, "UpstreamUnreachable", found, status.variant_failed(found), where)
            case Resolved():
                self._variants.append(self._variant(owner, place, spec, downstream, found, where))

    def _stall(
        self, owner: Owner, place: Place, code: str, message: str, conditions: tuple[Condition, ...], where: Where
    ) -> None:
        self._stalled.append(Stalled(owner, conditions, (Finding(code, message, where),), place))

    def _variant(
        self,
        owner: Owner,
        place: Place,
        spec: PackageVariantSpec,
        downstream: Repository,
        found: Resolved,
        where: Where,
    ) -> Variant:
        upstream = self._upstream(place.namespace, found)
        asked = {"name": owner.key.name, "spec": spec.as_data()}
        facts = {
            "variant": digest(asked),
            "upstream": f"{upstream.repo} {upstream.directory} {upstream.ref} {upstream.tree}",
            "repository": digest({"deployment": downstream.deployment}),
            "engine": self._around.engine,
        }
        warnings = tuple(Finding("UpstreamWarning", text, where, Severity.WARNING) for text in found.warnings)
        return Variant(
            owner, place, upstream, mutation_of(spec, owner.key.name, owner.key.namespace), facts,
            downstream.deployment, spec.adoption_policy, spec.deletion_policy, spec.labels, spec.annotations, warnings,
        )  # fmt: skip

    def _upstream(self, namespace: str, found: Resolved) -> Upstream:
        repository = self._around.repositories[namespace, found.repository]
        return Upstream(
            namespace, found.repository, self._around.upstreams.url(repository), kptfile_url(repository.url),
            found.directory, found.package, found.ref, found.commit, found.tree,
            self._around.upstreams.seconds(repository, found.commit),
        )  # fmt: skip

    def _resolve(self, namespace: str, upstream: UpstreamSpec) -> Resolved | Unresolved | str:
        key = (namespace, upstream)
        if key not in self._resolved:
            self._resolved[key] = self._resolve_anew(namespace, upstream)
        return self._resolved[key]

    def _resolve_anew(self, namespace: str, upstream: UpstreamSpec) -> Resolved | Unresolved | str:
        repository = self._around.repositories.get((namespace, upstream.repo))
        if repository is None:
            return repository_missing(upstream, namespace)
        refs = self._around.upstreams.refs(repository)
        if isinstance(refs, str):
            return refs
        known = UpstreamRepository(repository.key.name, repository.branch, repository.directory, repository.tag_prefix)
        return resolve(upstream, known, refs)

    # sets

    def take_set(self, one: ConfigObject) -> None:
        """Expand a PackageVariantSet; one that fails leaves its variants as they were (design 10.33)."""
        spec, errors, warnings = read_package_variant_set(one.data)
        self._findings += [_at_field(one, text, "Deprecated", Severity.WARNING) for text in warnings]
        if spec is None:
            findings = [_at_field(one, text, "ValidationError") for text in errors]
            self._fail_set(one, status.set_invalid(errors), findings)
            return
        wanted = PackageVariantSet(one.key, str(one.data["metadata"].get("uid") or one.key.uid), spec)
        expansion = expand_set(wanted, _SetView(self, one.key.namespace))
        failure = expansion if isinstance(expansion, SetFailure) else name_conflict(expansion, self._written)
        if failure or isinstance(expansion, SetFailure):
            assert failure
            self._fail_set(one, status.set_failed(failure), [Finding(failure.reason, failure.message, one.where)])
            return
        self._take_expansion(one, expansion)

    def _fail_set(self, one: ConfigObject, conditions: tuple[Condition, ...], findings: Iterable[Finding]) -> None:
        self._findings += findings
        self._kept.add(one.key)
        self._statuses.append(ConfigStatus(one.key, one.api_version, conditions))

    def _take_expansion(self, one: ConfigObject, expansion: Expansion) -> None:
        existing = self._around.children.get(one.key, ())
        guarded = guard_deletions(expansion, existing, one.annotations, self._around.max_delete_percent)
        for skipped in expansion.skipped:
            self._findings.append(Finding(skipped.reason, skipped.message, one.where))
        if expansion.skipped:
            self._kept.add(one.key)
        if guarded.why:
            self._findings.append(Finding(guarded.why.reason, guarded.why.message, one.where))
        elif not expansion.variants and not expansion.skipped:
            self._findings.append(
                Finding("NoMatch", f"no target of {one.key} matches anything", one.where, Severity.WARNING)
            )
        for generated in expansion.variants:
            self._take_generated(generated, one)
        self._statuses.append(_set_status(one, expansion, guarded.why))

    def _take_generated(self, generated: GeneratedVariant, one: ConfigObject) -> None:
        data = generated.as_data()
        key = ObjectKey(PORCH_GROUP, "PackageVariant", generated.namespace, generated.name)
        owner = Owner(key, VARIANT_API_VERSION, one.key)
        self._statuses.append(ConfigStatus(key, VARIANT_API_VERSION, spec=data["spec"], metadata=data["metadata"]))
        self._place(owner, generated.spec, one.where)

    # what a set may look at

    def repository(self, namespace: str, name: str) -> Repository | None:
        return self._around.repositories.get((namespace, name))

    def select(self, api_version: str, kind: str, namespace: str) -> Sequence[ConfigObject]:
        return self._catalog.of_type(api_version, kind, namespace)

    def knows_kind(self, api_version: str, kind: str) -> bool:
        return any((api_version, kind) == (known, of) for known, of, _ in self._catalog.types) or self._is_defined(
            api_version, kind
        )

    def _is_defined(self, api_version: str, kind: str) -> bool:
        group, _, _ = api_version.rpartition("/")
        definitions = self._catalog.of_kind("apiextensions.k8s.io", "CustomResourceDefinition")
        return any(_defines(definition.data, group, kind) for definition in definitions)

    def described_upstream(self, namespace: str, upstream: UpstreamSpec) -> Mapping[str, Any] | Unresolved:
        found = self._resolve(namespace, upstream)
        if isinstance(found, str):
            return Unresolved("UpstreamUnreachable", found)
        if isinstance(found, Unresolved):
            return found
        repository = self._around.repositories[namespace, found.repository]
        refs = self._around.upstreams.refs(repository)
        assert not isinstance(refs, str)
        content = refs.file(found.commit, f"{found.directory}/{KPTFILE}")
        kptfile = read_kptfile(content) if content else ()
        metadata = kptfile.data.get("metadata") if isinstance(kptfile, Kptfile) else None
        metadata = metadata if isinstance(metadata, dict) else {}
        return upstream_metadata(found, namespace, metadata.get("labels") or {}, metadata.get("annotations") or {})

    def revision_set(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        found = self._catalog.named.get((REVISION_SET_API_VERSION, "PackageRevisionSet", namespace, name))
        return found.data if found else None


@dataclass(frozen=True)
class _SetView:
    """The room as one set sees it: its own namespace only."""

    room: _Room
    namespace: str

    def repository(self, name: str) -> Repository | None:
        return self.room.repository(self.namespace, name)

    def upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | Unresolved:
        return self.room.described_upstream(self.namespace, upstream)

    def revision_set(self, name: str) -> Mapping[str, Any] | None:
        return self.room.revision_set(self.namespace, name)

    def knows_kind(self, api_version: str, kind: str) -> bool:
        return self.room.knows_kind(api_version, kind)

    def select(self, api_version: str, kind: str) -> Sequence[ConfigObject]:
        return self.room.select(api_version, kind, self.namespace)


def kptfile_url(text: str) -> str:
    """Return a Repository's URL as Kptfiles write it: ending in `.git`, without credentials (design 10.18)."""
    bare = re.sub(r"(?<=://)[^/@\s]*@", "", text).rstrip("/")
    return bare if bare.endswith(".git") else f"{bare}.git"


def _set_status(one: ConfigObject, expansion: Expansion, held: SetFailure | None) -> ConfigStatus:
    skipped = [target.message for target in expansion.skipped]
    conditions = status.set_failed(held) if held else status.set_reconciled((), skipped)
    children = tuple(ObjectKey(PORCH_GROUP, "PackageVariant", made.namespace, made.name) for made in expansion.variants)
    targets = [
        {
            "repo": made.key.repo,
            "package": made.key.package,
            "packageVariant": made.name,
            "targetIndex": made.target_indexes[0],
        }
        for made in expansion.variants
    ]
    fields = {"targets": targets, "skipped": len(skipped)}
    return ConfigStatus(one.key, one.api_version, conditions, fields, children=children)


def _defines(data: Mapping[str, Any], group: str, kind: str) -> bool:
    spec = data.get("spec")
    names = spec.get("names") if isinstance(spec, dict) else None
    return isinstance(names, dict) and spec.get("group") == group and names.get("kind") == kind


def _place_of(one: ConfigObject) -> Place | None:
    spec = one.data.get("spec")
    downstream = spec.get("downstream") if isinstance(spec, dict) else None
    if not isinstance(downstream, dict):
        return None
    repo, package = downstream.get("repo"), downstream.get("package")
    return Place(one.key.namespace, repo, package) if isinstance(repo, str) and isinstance(package, str) else None


def _at_field(one: ConfigObject, text: str, code: str, severity: Severity = Severity.ERROR) -> Finding:
    """Place a text at the field that it names first: `spec.injectors[1].name must not be empty`."""
    named = _FIELD_PATH.search(text)
    return Finding(code, text, one.where_at(tuple(_steps(named[0]))) if named else one.where, severity)


def _steps(path: str) -> Iterator[str | int]:
    for name, index in _STEP.findall(path):
        yield name or int(index)
