"""The fleet config of a catalog: Repositories, clusters, targets, override policies and template merge rules.

`FleetServices` caches the fleet config. Inputs of single controllers do not belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.clusters.inventory import CLUSTER_KINDS, ClusterInventory, read_inventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.kafka_templates.model import TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND
from reconciler.controllers.kafka_templates.read_merge_rules import TemplateMergeRules, read_merge_rules
from reconciler.controllers.override_policies.model import CLUSTER_OVERRIDE_POLICY_KIND, OVERRIDE_POLICY_KIND
from reconciler.controllers.override_policies.policy_usage import check_rule_clusters
from reconciler.controllers.override_policies.read_policies import OverridePolicies, read_override_policies
from reconciler.controllers.package_variants.controller import format_kptfile_url
from reconciler.controllers.repositories import Repositories, Repository, read_repositories
from reconciler.controllers.results import ConfigSources, ControllerResult, collect_config_sources
from reconciler.git.errors import GitError
from reconciler.git.url import parse_url
from reconciler.krm.findings import Finding
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.model.targets import Target
from reconciler.reconcile.codes import PassCodes

REPOSITORY_KIND = (PORCH_GROUP, "Repository")
_FLEET_KINDS = (
    *CLUSTER_KINDS,
    (KUBEADMIRAL_GROUP, CLUSTER_OVERRIDE_POLICY_KIND),
    (KUBEADMIRAL_GROUP, OVERRIDE_POLICY_KIND),
    (TEMPLATE_RULE_GROUP, TEMPLATE_RULE_KIND),
)  # fmt: skip


@dataclass(frozen=True)
class FleetConfig:
    """The Repositories, clusters, targets, override policies and template merge rules of one config commit.

    The keys of `urls` are the namespace and the name of a Git Repository. `targetless_clusters` are the clusters that
    have neither a Repository nor a branch in the fleet repository.
    """

    urls: Mapping[tuple[str, str], str]
    repositories: Repositories
    inventory: ClusterInventory
    targets: Sequence[Target]
    targetless_clusters: Sequence[str]
    policies: OverridePolicies
    merge_rules: TemplateMergeRules
    findings: Sequence[Finding]

    @cached_property
    def upstream_urls(self) -> Mapping[tuple[str, str], str]:
        """Maps the namespace and the name of each Repository, of all types, to the URL from which it is read."""
        artifacts = {name: value.url for name, value in self.repositories.items() if value.artifacts}
        return {**artifacts, **self.urls}

    def find_labels(self, namespace: str, name: str) -> Mapping[str, str]:
        """Return the labels of a cluster, or of the Repository with a namespace and a name."""
        if name in self.inventory.clusters:
            return self.inventory.clusters[name].labels
        repository = self.repositories.get((namespace, name))
        return repository.labels if repository else {}


def build_fleet_config(
    catalog: Catalog, resolve_url: Callable[[str], str], get_fleet_url: Callable[[], str]
) -> FleetConfig:
    """Return the fleet config of a catalog.

    Args:
        resolve_url: Converts the URL in a Repository to the URL that Git uses. Raises GitError.
        get_fleet_url: Returns the URL of the fleet repository, or "". It is called only if a cluster has no Repository.
    """
    repositories, findings = read_repositories(catalog)
    # Cache resolved URLs, because thousands of Repositories can contain the same few URLs.
    resolve = lru_cache(None)(resolve_url)
    urls: dict[tuple[str, str], str] = {}
    refused = []
    for name, repository in repositories.items():
        if repository.artifacts:
            continue
        try:
            urls[name] = resolve(repository.url)
        except GitError as error:
            message = f"Repository {repository.key.name}: {error.message}"
            refused.append(PassCodes.URL_REFUSED.finding(message, repository.location))
    usable = {name: repository for name, repository in repositories.items() if name in urls or repository.artifacts}
    inventory = read_inventory(catalog, usable)
    fleet_clusters = [name for name, key in inventory.target_keys.items() if (key.group, key.kind) != REPOSITORY_KIND]
    fleet = get_fleet_url() if fleet_clusters else ""
    identity = lru_cache(None)(get_url_identity)
    targets = [
        build_repository_target(repository, urls[name], identity(urls[name]))
        for name, repository in sorted(usable.items())
        if name in urls
    ]
    targets += [
        build_fleet_target(catalog.objects[inventory.target_keys[name]], fleet, identity(fleet))
        for name in fleet_clusters
        if fleet
    ]
    definitions = _create_source_finder(catalog)
    targets = [replace(target, definition_sources=definitions(target)) for target in targets]
    policies = read_override_policies(catalog)
    rule_findings = check_rule_clusters(policies.valid.values(), inventory.clusters.values(), inventory.uncertain_names)
    merge_rules = read_merge_rules(catalog)
    all_findings = (
        *findings, *refused, *inventory.findings, *policies.findings, *rule_findings, *merge_rules.findings,
    )  # fmt: skip
    return FleetConfig(
        urls, usable, inventory, targets, () if fleet else fleet_clusters, policies, merge_rules, all_findings
    )


def list_fleet_objects(catalog: Catalog) -> tuple[object, ...]:
    """Return the objects that determine the fleet config. Catalogs with identical objects have equal fleet configs."""
    if catalog.unreadable or catalog.findings or catalog.duplicates:
        # Errors in the catalog affect the fleet config too. Therefore, return the catalog itself, so that the results
        # for two catalogs are never equal.
        return (catalog,)
    return tuple(config_object for kind in _FLEET_KINDS for config_object in catalog.objects_of_kind(*kind))


def build_repository_target(repository: Repository, url: str, normalized_url: str) -> Target:
    """Return the target of a Repository."""
    return Target(
        repository.key, url, format_kptfile_url(repository.url), repository.branch, repository.directory,
        repository.deployment, repository.location, repository.tag_prefix, normalized_url=normalized_url,
    )  # fmt: skip


def _create_source_finder(catalog: Catalog) -> Callable[[Target], ConfigSources]:
    """Return a function that finds the source files of a target.

    The source files contain the object that defines the target, and all objects of the cluster of the target.
    """
    objects_by_cluster: dict[str, list[ConfigObject]] = {}
    for kind in CLUSTER_KINDS:
        for config_object in catalog.objects_of_kind(*kind) if kind != REPOSITORY_KIND else ():
            objects_by_cluster.setdefault(config_object.key.name, []).append(config_object)

    def definition(target: Target) -> ConfigSources:
        cluster_objects = objects_by_cluster.get(target.name, ()) if target.is_deployment else ()
        return collect_config_sources((catalog.objects[target.key], *cluster_objects))

    return definition


def get_url_identity(url: str) -> str:
    """Return a text that is equal for all spellings of the URL of one repository."""
    return parse_url(url).identity


def build_fleet_target(cluster: ConfigObject, url: str, normalized_url: str) -> Target:
    """Return the target of a cluster that has no Repository. The target is a branch of the fleet repository."""
    name = cluster.key.name
    return Target(
        cluster.key, url, format_kptfile_url(url), f"clusters/{name}", "", True, cluster.location, f"{name}/",
        cluster.api_version, normalized_url,
    )  # fmt: skip


def remove_targetless_variants(result: ControllerResult, fleet: FleetConfig, catalog: Catalog) -> ControllerResult:
    """Remove the package variants of clusters that have neither a Repository nor a branch in the fleet repository."""
    if not fleet.targetless_clusters:
        return result
    clusters = sorted({variant.target.repository for variant in result.variants} & set(fleet.targetless_clusters))
    findings = (
        _create_missing_target_finding(catalog.objects[fleet.inventory.target_keys[name]], name) for name in clusters
    )
    variants = tuple(
        variant for variant in result.variants if variant.target.repository not in fleet.targetless_clusters
    )
    return replace(result, variants=variants, findings=(*result.findings, *findings))


def _create_missing_target_finding(cluster: ConfigObject, name: str) -> Finding:
    message = f"cluster {name} has no target for its packages; create a Repository for the cluster, or set `fleet.url`"
    return ControllerCodes.NO_DESTINATION.finding(message, cluster.location)
