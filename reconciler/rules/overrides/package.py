"""The overrides of a package on its way to a cluster: which of its documents are meant, and the files afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from posixpath import basename
from typing import Any

from reconciler.caching import cached
from reconciler.krm.findings import Finding, Where, errors
from reconciler.krm.identity import ObjectKey
from reconciler.packages.edited_files import with_documents
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import Package, PackageResource, resources_of
from reconciler.packages.parsing import Unparsable
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.notes import finding_of
from reconciler.rules.overrides.apply import Matched, Options, Overridden, matched_rules, override_attached
from reconciler.rules.overrides.attach import Attached, attach, list_notes
from reconciler.rules.overrides.codes import (
    IDENTITY_CHANGED,
    POLICY_DUPLICATE,
    POLICY_INVALID,
    POLICY_NAME_EMPTY,
    POLICY_NOT_FOUND,
)
from reconciler.rules.overrides.in_force import Texts, texts_in_force
from reconciler.rules.overrides.model import GROUP
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.overrides.rollout import RuleId
from reconciler.rules.overrides.usage import UsageData, usage_data
from reconciler.snapshot.files import FileTree

_NOT_MATCHED = {one.name for one in (POLICY_DUPLICATE, POLICY_INVALID, POLICY_NAME_EMPTY, POLICY_NOT_FOUND)}
# whom a resource without policies goes to makes no difference
_ANYWHERE = Cluster("")
_NOT_APPLIED = {IDENTITY_CHANGED.name}
# clusters differ in few rules: room for every distinct outcome of the packages in flight
_REMEMBERED_PACKAGES = 1024
_REMEMBERED_FILES = 4096


@dataclass(frozen=True)
class OverriddenPackage:
    """A package as a cluster is to have it; with an error finding its files are as they were, and must not be used.

    `resources` are the documents that have policies, in the order of their files; `asked` all the policies that they
    name, whether these exist or not, or that choose them: the outcome depends on them, on the cluster, on `rules`, on
    which policies choose, and on nothing else. `rules` are the rules of these policies that the cluster can feel, each
    with the text by which it was applied; None where it is not there yet. `unread` are those of `asked` that may
    stand in a file of the config that cannot be read: while there are any, the outcome depends on these files, too.
    """

    files: FileTree
    resources: tuple[Overridden, ...] = ()
    findings: tuple[Finding, ...] = ()
    asked: tuple[ObjectKey, ...] = ()
    rules: Texts = field(default_factory=dict)
    unread: tuple[ObjectKey, ...] = ()

    @property
    def reason(self) -> str:
        """The reason of a condition that says how it went (kubeadmiral 7); "" where no resource has a policy."""
        failed = {finding.code for finding in errors(self.findings)}
        if not failed:
            return "OverridePolicyApplied" if self.resources else ""
        if failed & _NOT_MATCHED:
            return "MatchOverridePolicyFailed"
        return "ApplyOverridesFailed" if failed <= _NOT_APPLIED else "ParseOverridePolicyFailed"

    @cached_property
    def usage(self) -> UsageData:
        """How it uses policies, as state keeps it."""
        return usage_data(self.resources)

    def as_data(self) -> list[dict[str, Any]]:
        """Return what was changed as `overrides` of the status file (design 10.28)."""
        return [*self._data]

    @cached_property
    def _data(self) -> tuple[dict[str, Any], ...]:
        return tuple(entry for one in self.resources for entry in one.as_data())


@dataclass(frozen=True)
class _Considered:
    """A resource with the policies that it names; without any, `outcome` is what becomes of it wherever it goes."""

    resource: PackageResource
    attached: Attached
    outcome: Overridden | None


@dataclass(frozen=True)
class _Read:
    """What of a package matters, wherever it goes: its resources with the policies that they name, and its Lists.

    `kinds` are those of the resources, as `group/Kind`, and `asked` the policies, both sorted.
    """

    resources: tuple[_Considered, ...]
    told: tuple[Finding, ...]
    kinds: tuple[str, ...]
    asked: tuple[ObjectKey, ...]


@dataclass(frozen=True)
class _Case:
    """A package with the rules for it: cases that are equal come to the same, unless a rule has variables."""

    files: FileTree
    rules: tuple[tuple[tuple[int, ...], tuple[tuple[RuleId, str | None], ...]], ...]
    lost: tuple[ObjectKey, ...]
    cluster: Cluster = field(compare=False)
    matched: Mapping[ObjectKey, Matched] = field(compare=False)
    texts: Texts = field(compare=False)


class Overriding:
    """Overrides packages by the policies of one config, and does once what is the same on many clusters."""

    def __init__(self, policies: Policies, options: Options | None = None) -> None:
        self._policies = policies
        self._options = options or Options()
        self._read_file = cached(_REMEMBERED_FILES)(self._read_documents)
        self._read = cached(_REMEMBERED_PACKAGES)(self._read_package)
        self._made = cached(_REMEMBERED_PACKAGES)(self._make)

    def kinds(self, files: FileTree) -> tuple[str, ...]:
        """Return the kinds of the documents that policies can be attached to, as `group/Kind`, sorted."""
        return self._read(files).kinds

    def override(
        self, files: FileTree, cluster: Cluster, texts: Texts, had: Iterable[ObjectKey] = ()
    ) -> OverriddenPackage:
        """Return a package with the policies of its resources applied, and without the labels that name them.

        KRM documents are meant, but not a Kptfile, local config, policies, Lists, and files that are ignored or cannot
        be read (design 10.16). A rule with a rollout is applied by its text in `texts`, where that has one (design
        10.23). One that the package `had`, and that may stand in a file which cannot be read, is an error: it may have
        chosen (design 10.5).
        """
        asked, policies = self._read(files).asked, self._policies
        sound = [policies.sound[key] for key in asked if key in policies.sound]
        matched = {one.key: matched_rules(one, cluster, texts) for one in sound}
        in_force = {one.key: texts_in_force(one, cluster, texts) for one in sound}
        lost = tuple(sorted(key for key in {*had}.difference(asked) if policies.may_exist(key)))
        rules = tuple((one.rules, tuple(in_force[key].items())) for key, one in matched.items())
        whole = {name: text for texts in in_force.values() for name, text in texts.items()}
        case = _Case(files, rules, lost, cluster, matched, whole)
        return self._make(case) if any(one.has_variables for one in matched.values()) else self._made(case)

    def _read_package(self, files: FileTree) -> _Read:
        read = [self._read_file(*file) for file in Package(files).contents()]
        return _Read(
            resources=tuple(considered for one in read for considered in one.resources),
            told=tuple(finding for one in read for finding in one.told),
            kinds=tuple(sorted({kind for one in read for kind in one.kinds})),
            asked=tuple(sorted({key for one in read for key in one.asked})),
        )

    def _read_documents(self, package: str, path: str, content: bytes) -> _Read:
        """Return what of one file matters, its kinds and policies in any order."""
        read = resources_of(package, path, content)
        documents = () if isinstance(read, Unparsable) else read
        considered = tuple(self._considered(one) for one in documents if is_considered(one))
        told = (finding_of(one, note) for one in documents if is_list(one) for note in list_notes(one.data))
        kinds = {f"{one.resource.group}/{one.resource.kind}" for one in considered}
        asked = {key for one in considered for key in one.attached.asked}
        return _Read(considered, tuple(told), tuple(kinds), tuple(asked))

    def _considered(self, resource: PackageResource) -> _Considered:
        attached = attach(resource, self._policies, self._options.on_missing)
        if attached.policies:
            return _Considered(resource, attached, None)
        return _Considered(resource, attached, override_attached(resource, attached, (), _ANYWHERE, self._options))

    def _make(self, case: _Case) -> OverriddenPackage:
        read, files = self._read(case.files), case.files
        overridden = tuple(one.outcome or self._override(one, case) for one in read.resources)
        findings = (*(finding for one in overridden for finding in one.findings), *read.told, *map(_lost, case.lost))
        changed = (
            files if errors(findings) else with_documents(files, ((one.resource, one.document) for one in overridden))
        )
        named = tuple(one for one in overridden if one.asked)
        known = tuple(sorted({*read.asked, *case.lost}))
        unread = tuple(filter(self._policies.may_exist, known))
        return OverriddenPackage(changed, named, findings, known, case.texts, unread)

    def _override(self, one: _Considered, case: _Case) -> Overridden:
        matched = tuple(case.matched[policy.key] for policy in one.attached.policies)
        return override_attached(one.resource, one.attached, matched, case.cluster, self._options)


def _lost(key: ObjectKey) -> Finding:
    message = f"{key}, which this package had, does not exist, unless it is in a file that cannot be read"
    return POLICY_NOT_FOUND.finding(message, Where(object=str(key)))


def is_considered(resource: PackageResource) -> bool:
    """Tell whether policies can be attached to a document of a package."""
    return bool(
        resource.api_version
        and resource.kind
        and basename(resource.path) != KPTFILE
        and not resource.is_local_config
        and not (resource.group == GROUP and resource.kind.endswith("Policy"))
        and not is_list(resource)
    )


def is_list(resource: PackageResource) -> bool:
    """Tell whether a document is a List of others."""
    data = resource.data
    return resource.kind.endswith("List") and isinstance(data, Mapping) and isinstance(data.get("items"), list)
