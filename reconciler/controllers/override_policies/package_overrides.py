"""Application of override policies to one package for a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from posixpath import basename
from typing import Any

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.files import FileTree
from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.attachment import (
    AttachedPolicies,
    check_list_labels,
    find_attached_policies,
)
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.effective_rules import RuleTexts, find_effective_texts
from reconciler.controllers.override_policies.policy_usage import UsageData, build_usage_data
from reconciler.controllers.override_policies.read_policies import OverridePolicies
from reconciler.controllers.override_policies.resource_overrides import (
    MatchedPolicy,
    OverriddenResource,
    OverrideOptions,
    apply_overrides,
    match_rules,
)
from reconciler.controllers.override_policies.rollout import RuleId
from reconciler.controllers.resource_findings import create_finding
from reconciler.krm.findings import Finding, SourceLocation, select_errors
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.memory import cached
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.package import PackageResource, get_package, parse_resources
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.write_back import replace_documents

_MATCH_FAILURES = {
    code.name
    for code in (
        PolicyCodes.POLICY_DUPLICATE,
        PolicyCodes.POLICY_INVALID,
        PolicyCodes.POLICY_NAME_EMPTY,
        PolicyCodes.POLICY_NOT_FOUND,
    )
}
# Use this cluster for resources without policies, because their result is equal on every cluster.
_ANY_CLUSTER = Cluster("")
_APPLY_FAILURES = {PolicyCodes.IDENTITY_CHANGED.name}
# Maximum number of packages in the cache. A larger cache is not necessary, because most clusters have the same rules
# and share results.
_MAX_CACHED_PACKAGES = 1024
_MAX_CACHED_FILES = 4096


@dataclass(frozen=True)
class OverriddenPackage:
    """A package after the override policies are applied for a cluster.

    If one of the findings is an error, `files` are unchanged and must not be used. The result can be reused while these
    inputs are unchanged:

    - the candidate policies, their rule texts, and the selectors of all policies
    - the cluster
    - the unreadable config files, if `unreadable_policies` is not empty

    Attributes:
        resources: The resources that have policies, in the order of their files.
        candidate_policies: All policies that a resource refers to or that select a resource. Missing policies are
            included.
        rule_texts: The effective texts of the rules of these policies. Rules that cannot affect the cluster are not
            included. The text is None if the rule does not apply yet.
        unreadable_policies: The candidate policies that may be in an unreadable file of the config.
    """

    files: FileTree
    resources: tuple[OverriddenResource, ...] = ()
    findings: tuple[Finding, ...] = ()
    candidate_policies: tuple[ObjectKey, ...] = ()
    rule_texts: RuleTexts = field(default_factory=dict)
    unreadable_policies: tuple[ObjectKey, ...] = ()

    @property
    def condition_reason(self) -> str:
        """The reason of the condition about applied overrides. It is "" if no resource has a policy."""
        failed = {finding.code for finding in select_errors(self.findings)}
        if not failed:
            return "OverridePolicyApplied" if self.resources else ""
        if failed & _MATCH_FAILURES:
            return "MatchOverridePolicyFailed"
        return "ApplyOverridesFailed" if failed <= _APPLY_FAILURES else "ParseOverridePolicyFailed"

    @cached_property
    def usage(self) -> UsageData:
        """Data about the policies that the package uses, in the form that the state stores."""
        return build_usage_data(self.resources)

    def as_data(self) -> list[dict[str, Any]]:
        """Return the changed values as entries of the field `overrides` in a status file."""
        return [*self._data]

    @cached_property
    def _data(self) -> tuple[dict[str, Any], ...]:
        return tuple(entry for resource in self.resources for entry in resource.as_data())


@dataclass(frozen=True)
class _AttachedResource:
    """A resource with its policies.

    Attributes:
        outcome: The result if the resource has no policies, which is the same for all clusters. Otherwise, None.
    """

    resource: PackageResource
    attached: AttachedPolicies
    outcome: OverriddenResource | None


@dataclass(frozen=True, eq=False)
class _PackageContent:
    """Package data for all clusters: the resources that can have policies, and the findings about Lists.

    `kinds` are the kinds of the resources as `group/Kind`. `candidate_policies` are all policies that a resource refers
    to or that select a resource.
    """

    resources: tuple[_AttachedResource, ...]
    list_findings: tuple[Finding, ...]
    kinds: tuple[str, ...]
    candidate_policies: tuple[ObjectKey, ...]


@dataclass(frozen=True)
class _OverrideCase:
    """A package and the rules that apply to it.

    The cases of several clusters can be equal, because `cluster` is not compared. If the rules contain no variables,
    equal cases share one result.
    """

    files: FileTree
    rules: tuple[tuple[tuple[int, ...], tuple[tuple[RuleId, str | None], ...]], ...]
    lost_policies: tuple[ObjectKey, ...]
    cluster: Cluster = field(compare=False)
    matched: Mapping[ObjectKey, MatchedPolicy] = field(compare=False)
    texts: RuleTexts = field(compare=False)


class PackageOverrider:
    """Applies the policies of one config to packages. Results that many clusters share are computed only once."""

    def __init__(self, policies: OverridePolicies, options: OverrideOptions | None = None) -> None:
        self._policies = policies
        options = options or OverrideOptions()
        # The caches do not refer to this object, so that Python frees them with this object at the end of a pass. A
        # reference cycle would keep them until the next garbage collection.
        read_file = cached(_MAX_CACHED_FILES)(partial(_read_documents, policies, options))
        join = cached(_MAX_CACHED_PACKAGES)(_join_contents)
        self._read_cached = cached(_MAX_CACHED_PACKAGES)(partial(_read_package, read_file, join))
        self._apply_case = partial(_apply_case, policies, options, self._read_cached)
        self._apply_cached = cached(_MAX_CACHED_PACKAGES)(self._apply_case)

    def find_kinds(self, files: FileTree) -> tuple[str, ...]:
        """Return the sorted kinds of the resources that can have policies, as `group/Kind`."""
        return self._read_cached(files).kinds

    def override(
        self, files: FileTree, cluster: Cluster, texts: RuleTexts, previous_policies: Iterable[ObjectKey] = ()
    ) -> OverriddenPackage:
        """Apply the policies to a package, and remove the labels that name policies.

        Policies do not apply to the Kptfile, local config, policies, Lists, ignored files and unreadable files.

        Args:
            texts: Versions of rules with a rollout, which are applied instead of the current versions.
            previous_policies: The policies that applied to the package in an earlier pass. If a policy is missing, but
                may exist in an unreadable file, the result is an error: the policy may still select a resource.
        """
        candidate_policies, policies = self._read_cached(files).candidate_policies, self._policies
        valid = [policies.valid[key] for key in candidate_policies if key in policies.valid]
        matched = {policy.key: match_rules(policy, cluster, texts) for policy in valid}
        effective_texts = {policy.key: find_effective_texts(policy, cluster, texts) for policy in valid}
        lost_policies = tuple(
            sorted(key for key in {*previous_policies}.difference(candidate_policies) if policies.can_exist(key))
        )
        rules = tuple((policy.rule_numbers, tuple(effective_texts[key].items())) for key, policy in matched.items())
        rule_texts = {name: text for texts in effective_texts.values() for name, text in texts.items()}
        case = _OverrideCase(files, rules, lost_policies, cluster, matched, rule_texts)
        return (
            self._apply_case(case)
            if any(policy.has_variables for policy in matched.values())
            else self._apply_cached(case)
        )


def _read_package(
    read_file: Callable[[str, str, bytes], _PackageContent],
    join: Callable[..., _PackageContent],
    files: FileTree,
) -> _PackageContent:
    contents = (read_file(*file) for file in get_package(files).iterate_krm_files())
    # Omit files that contain neither resources that can have policies nor invalid Lists. Most clusters differ only in
    # the omitted files, so that they share the cached result of `join`.
    return join(*(content for content in contents if content.resources or content.list_findings))


def _join_contents(*contents: _PackageContent) -> _PackageContent:
    return _PackageContent(
        resources=tuple(attached_resources for content in contents for attached_resources in content.resources),
        list_findings=tuple(finding for content in contents for finding in content.list_findings),
        kinds=tuple(sorted({kind for content in contents for kind in content.kinds})),
        candidate_policies=tuple(sorted({key for content in contents for key in content.candidate_policies})),
    )


def _read_documents(
    policies: OverridePolicies, options: OverrideOptions, package: str, path: str, content: bytes
) -> _PackageContent:
    """Return the resources of one file that can have policies. Leave `kinds` and `candidate_policies` unsorted."""
    parsed = parse_resources(package, path, content)
    documents = () if isinstance(parsed, ParseFailure) else parsed
    attached_resources = tuple(
        _attach(document, policies, options) for document in documents if can_have_policies(document)
    )
    list_findings = (
        create_finding(document, issue)
        for document in documents
        if is_list(document)
        for issue in check_list_labels(document.data)
    )
    kinds = {f"{document.resource.group}/{document.resource.kind}" for document in attached_resources}
    candidate_policies = {key for document in attached_resources for key in document.attached.candidate_policies}
    return _PackageContent(attached_resources, tuple(list_findings), tuple(kinds), tuple(candidate_policies))


def _attach(resource: PackageResource, policies: OverridePolicies, options: OverrideOptions) -> _AttachedResource:
    attached = find_attached_policies(resource, policies, options.on_missing)
    if attached.policies:
        return _AttachedResource(resource, attached, None)
    return _AttachedResource(resource, attached, apply_overrides(resource, attached, (), _ANY_CLUSTER, options))


def _apply_case(
    policies: OverridePolicies,
    options: OverrideOptions,
    read_package: Callable[[FileTree], _PackageContent],
    case: _OverrideCase,
) -> OverriddenPackage:
    package_content, files = read_package(case.files), case.files
    overridden = tuple(resource.outcome or _override(resource, case, options) for resource in package_content.resources)
    findings = (
        *(finding for resource in overridden for finding in resource.findings),
        *package_content.list_findings,
        *map(_build_lost_policy_finding, case.lost_policies),
    )
    changed = (
        files
        if select_errors(findings)
        else replace_documents(files, ((resource.resource, resource.document) for resource in overridden))
    )
    with_policies = tuple(resource for resource in overridden if resource.candidate_policies)
    candidates = tuple(sorted({*package_content.candidate_policies, *case.lost_policies}))
    unreadable = tuple(filter(policies.can_exist, candidates))
    return OverriddenPackage(changed, with_policies, findings, candidates, case.texts, unreadable)


def _override(resource: _AttachedResource, case: _OverrideCase, options: OverrideOptions) -> OverriddenResource:
    matched = tuple(case.matched[policy.key] for policy in resource.attached.policies)
    return apply_overrides(resource.resource, resource.attached, matched, case.cluster, options)


def _build_lost_policy_finding(key: ObjectKey) -> Finding:
    message = (
        f"{key} applied to this package before, but does not exist any more or is in an unreadable file. Next step:"
        " correct the unreadable files"
    )
    return PolicyCodes.POLICY_NOT_FOUND.finding(message, SourceLocation(object=key.reference))


def can_have_policies(resource: PackageResource) -> bool:
    """Return whether override policies can apply to a resource."""
    return bool(
        resource.api_version
        and resource.kind
        and basename(resource.path) != KPTFILE
        and not resource.is_local_config
        and not (resource.group == KUBEADMIRAL_GROUP and resource.kind.endswith("Policy"))
        and not is_list(resource)
    )


def is_list(resource: PackageResource) -> bool:
    """Return whether a document is a Kubernetes List that contains other objects."""
    data = resource.data
    return resource.kind.endswith("List") and isinstance(data, Mapping) and isinstance(data.get("items"), list)
