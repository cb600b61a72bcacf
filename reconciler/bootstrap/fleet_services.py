"""Reads the fleet config from a catalog, and derives the targets, their conflicts and their URLs.

`FleetServices` caches the fleet config. Controllers and their inputs do not belong here. `CatalogServices` contains
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reconciler.bootstrap.fleet_config import (
    REPOSITORY_KIND,
    FleetConfig,
    build_fleet_config,
    build_fleet_target,
    build_repository_target,
    get_url_identity,
    list_fleet_objects,
)
from reconciler.bootstrap.options import build_git_options
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.definition_conflicts import DefinitionConflict, find_duplicates, get_claimed_git_location
from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.object_isolation import FaultyObjectSearch
from reconciler.controllers.catalog_checks import find_conflicting_objects
from reconciler.controllers.clusters.inventory import CLUSTER_KINDS, KnownClusters, read_known_clusters
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.keyed_cache import are_identical
from reconciler.controllers.repositories import Repository, read_repository
from reconciler.controllers.results import PackageTarget
from reconciler.git.errors import GitError
from reconciler.git.source import RepositoryOrFolder, resolve_repository
from reconciler.git.url import check_url_allowed, parse_url
from reconciler.krm.findings import Finding
from reconciler.krm.git_formats import normalize_repository_url
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import replace
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.planning.layout.refs import TagPolicy
from reconciler.planning.model.branch_names import ReservedBranches
from reconciler.planning.model.target_conflicts import find_conflicting_targets, find_target_conflicts
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.remotes import Remotes
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX
from reconciler.settings import Settings

_NO_FLEET = "no-fleet.git"


class FleetServices:
    """Services that use the fleet config of a catalog. The fleet configs of the last two catalogs are cached."""

    def __init__(self, settings: Settings, source: RepositoryOrFolder, *, offline: bool = False) -> None:
        self._settings = settings
        self._source = source
        self._options = build_git_options(settings)
        self._offline = offline
        self._fleet_configs: list[tuple[Catalog, FleetConfig]] = []
        self._fleet_config_search: FaultyObjectSearch[FleetConfig] = FaultyObjectSearch(
            "Repositories, clusters and policies"
        )

    def isolate_faulty_objects(self, catalog: Catalog) -> Catalog:
        """Return the catalog without the Repositories, clusters and policies that cause an unexpected exception."""
        outcome = self._fleet_config_search.run(catalog, self.get_fleet_config, self._build_fleet_config)
        if not outcome.excluded:
            return catalog
        return replace(outcome.catalog, findings=(*catalog.findings, *outcome.findings))

    def list_targets(self, catalog: Catalog) -> Sequence[Target]:
        """Return a target for each usable Repository and for each cluster with a branch in the fleet repository."""
        return self.get_fleet_config(catalog).targets

    def find_target_conflicts(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return a finding for each target that the reconciler must not write to.

        The keys are the Repositories and cluster objects that define these targets.
        """
        fleet = self.get_fleet_config(catalog)
        conflicts = fleet.inventory.conflicts
        deployments = (target for target in fleet.targets if target.is_deployment)
        cluster_conflicts = {target.key: conflicts[target.name] for target in deployments if target.name in conflicts}
        drafts = self._settings.drafts
        branch_conflicts = find_target_conflicts(fleet.targets, (drafts.branch, drafts.removals_branch))
        return {
            **cluster_conflicts,
            **branch_conflicts,
            **fleet.inventory.invalid_objects,
            **self.find_reserved_branches(catalog),
        }

    def find_rival_claims(self, catalog: Catalog) -> Sequence[DefinitionConflict]:
        """Return the conflicts between objects that define the same target, or that must not exist together.

        The function `find_conflicting_objects` finds the objects that must not exist together.
        """
        drafts = self._settings.drafts
        targets = self.get_fleet_config(catalog).targets
        return [
            *find_conflicting_objects(catalog),
            *(
                DefinitionConflict(
                    (catalog.objects[first.key], catalog.objects[second.key]),
                    reason,
                    claimed_location=get_claimed_git_location,
                )
                for first, second, reason in find_conflicting_targets(targets, (drafts.branch, drafts.removals_branch))
            ),
        ]

    def find_claimed_targets(
        self, catalog: Catalog, conflicts: Sequence[DefinitionConflict]
    ) -> Mapping[ConfigObject, Target]:
        """Return the targets that the conflicting objects define. Omit objects that define no target."""
        if not conflicts:
            return {}
        targets = {target.key: target for target in self.get_fleet_config(catalog).targets}
        claims = (claim for conflict in conflicts for claim in conflict.claims)
        candidates = ((claim, targets.get(claim.key) or self._build_target(claim)) for claim in claims)
        return {claim: target for claim, target in candidates if target}

    def _build_target(self, claim: ConfigObject) -> Target | None:
        kind = (claim.key.group, claim.key.kind)
        if kind in CLUSTER_KINDS and kind != REPOSITORY_KIND:
            fleet = self._get_fleet_url()
            return build_fleet_target(claim, fleet, get_url_identity(fleet)) if fleet else None
        repository = read_repository(claim) if kind == REPOSITORY_KIND else None
        if not isinstance(repository, Repository) or repository.artifacts:
            return None
        try:
            url = self.resolve_url(repository.url)
        except GitError:
            # Do not report the invalid URL here. This method only processes objects that conflict with each other, and
            # the pass reports each conflict.
            return None
        return build_repository_target(repository, url, get_url_identity(url))

    def find_reserved_branches(self, catalog: Catalog) -> Mapping[ObjectKey, Finding]:
        """Return an error for each target whose branch name is reserved for branches that the reconciler creates."""
        fleet, settings = self.get_fleet_config(catalog), self._settings
        names = {"status.branch": settings.status.branch, "drafts.config_branch": settings.drafts.config_branch}
        templates = {"drafts.branch": settings.drafts.branch, "drafts.removals_branch": settings.drafts.removals_branch}
        if settings.state_ref.startswith(BRANCH_PREFIX):
            templates["state_ref"] = settings.state_ref.removeprefix(BRANCH_PREFIX)
        uses = ReservedBranches(templates, names).find_reserved_uses(fleet.targets)
        branches = {target.key: target.branch for target in fleet.targets}
        return {
            key: _create_reserved_branch_finding(catalog.objects[key], branches[key], use) for key, use in uses.items()
        }

    def list_urls(self, catalog: Catalog) -> tuple[Sequence[str], Sequence[str]]:
        """Return the URLs of all upstream repositories, and the URLs of all target repositories."""
        fleet = self.get_fleet_config(catalog)
        named = {(package.namespace, package.repository) for package in _list_named_upstreams(catalog)}
        repositories = fleet.repositories.items()
        # Include the URLs of all duplicate objects, because the pass decides only after the fetch which of the
        # duplicates has an effect.
        duplicates = self.find_claimed_targets(catalog, find_duplicates(catalog)).values()
        upstreams = {
            fleet.urls[name]
            for name, repository in repositories
            if name in fleet.urls and (not repository.deployment or name in named)
        }
        upstreams |= {
            target.url
            for target in duplicates
            if not target.is_deployment or (target.key.namespace, target.key.name) in named
        }
        return sorted(upstreams), sorted({target.url for target in (*fleet.targets, *duplicates)})

    def list_settings_urls(self) -> Mapping[str, str | GitError]:
        """Return the URL, or the error of an invalid URL, for each setting that contains a repository URL.

        The keys are names of settings, e.g. `fleet.url`.
        """
        urls = {"fleet.url": self._settings.fleet.url, "status.url": self._settings.status.url}
        return {setting: self._resolve_settings_url(url) for setting, url in urls.items() if url}

    def find_recorded_file(self, key: ObjectKey, remotes: Remotes) -> str:
        """Return the config file that the status branch records for an object. Return "" if there is none."""
        # Import the module here, because most configs have no conflicting definitions.
        from reconciler.reconcile.recorded_files import find_recorded_file

        text = self._settings.status.url or self._settings.fleet.url
        url = self._resolve_settings_url(text) if text else ""
        return (
            find_recorded_file(key, remotes, url, self._settings.status.branch) if url and isinstance(url, str) else ""
        )

    def _resolve_settings_url(self, text: str) -> str | GitError:
        try:
            url = parse_url(text)
            check_url_allowed(url, self._options.allowed_urls)
        except GitError as error:
            return error
        return url.connection_url

    def read_cluster_versions(self, catalog: Catalog) -> KnownClusters:
        """Return the clusters of the config with their Kubernetes versions."""
        return read_known_clusters(catalog, self.get_fleet_config(catalog).inventory)

    def create_tag_policy(self, catalog: Catalog) -> TagPolicy:
        """Return the policy that decides which packages get Git tags for their revisions."""
        return TagPolicy(self._settings.git.revision_tags, frozenset(_list_named_upstreams(catalog)))

    def find_locked_tree(self, files: FileTree, catalog: Catalog, remotes: Remotes) -> TreeId | None:
        """Return the upstream tree that the `upstreamLock` of the Kptfile in `files` names.

        Return None if there is no lock, or if the tree cannot be found.
        """
        kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
        lock = kptfile.upstream_lock.git if isinstance(kptfile, Kptfile) and kptfile.upstream_lock else None
        if lock is None:
            return None
        for url in self.find_upstream_urls(lock.repo, catalog):
            if remote := remotes.get_upstream(url):
                return remote.find_tree(CommitId(lock.commit), lock.directory.strip("/"))
        return None

    def find_upstream_urls(self, repo: str, catalog: Catalog) -> tuple[str, ...]:
        """Return the URLs of the Repositories that match a repository URL from a Kptfile or status file."""
        fleet, normalized_url = self.get_fleet_config(catalog), normalize_repository_url(repo)
        names = (
            name
            for name, repository in fleet.repositories.items()
            if name in fleet.urls and normalize_repository_url(repository.url) == normalized_url
        )
        return tuple(dict.fromkeys(fleet.urls[name] for name in names))

    def get_fleet_config(self, catalog: Catalog) -> FleetConfig:
        """Return the fleet config of a catalog."""
        # Cache the results for two catalogs, because a command can compare two catalogs.
        entry = next((cached for cached in self._fleet_configs if cached[0] is catalog), None)
        if entry is None:
            entry = (catalog, self._find_reusable_fleet_config(catalog) or self._build_fleet_config(catalog))
            self._fleet_configs = [*self._fleet_configs[-1:], entry]
        return entry[1]

    def _find_reusable_fleet_config(self, catalog: Catalog) -> FleetConfig | None:
        """Return the fleet config that was built from identical Repositories, clusters and policies.

        Return None if the cache does not contain it.
        """
        objects = list_fleet_objects(catalog)
        return next(
            (
                fleet
                for cached, fleet in reversed(self._fleet_configs)
                if are_identical(list_fleet_objects(cached), objects)
            ),
            None,
        )

    def _build_fleet_config(self, catalog: Catalog) -> FleetConfig:
        return build_fleet_config(catalog, self.resolve_url, self._get_fleet_url)

    def _get_fleet_url(self) -> str:
        """Return the URL of the fleet repository.

        If the settings contain no fleet repository, return "". In an offline render, return a path without a repository
        instead of "", because every cluster needs a target.
        """
        if self._settings.fleet.url:
            return parse_url(self._settings.fleet.url).connection_url
        return str(Path(self._settings.cache).expanduser().absolute() / _NO_FLEET) if self._offline else ""

    def resolve_url(self, text: str) -> str:
        """Convert the repository URL in a config object to the URL that Git uses. Raises GitError if this fails."""
        return resolve_repository(text, self._source, self._options).connection_url


def _list_named_upstreams(catalog: Catalog) -> Iterator[PackageTarget]:
    """Yield each package that a PackageVariant, PackageVariantSet or PackageRevisionSet names as an upstream."""
    for kind in ("PackageVariant", "PackageVariantSet", "PackageRevisionSet"):
        objects = (*catalog.objects_of_kind(PORCH_GROUP, kind), *catalog.objects_of_kind("reconciler.dev", kind))
        for config_object in objects:
            spec = config_object.data.get("spec")
            listed = [spec.get("upstream"), *_get_list(spec.get("upstreams"))] if isinstance(spec, dict) else []
            for upstream in listed:
                if isinstance(upstream, dict):
                    repository, package = str(upstream.get("repo")), str(upstream.get("package"))
                    yield PackageTarget(config_object.key.namespace, repository, package)


def _get_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _create_reserved_branch_finding(config_object: ConfigObject, branch: str, use: str) -> Finding:
    message = (
        f'spec.git.branch "{branch}" is reserved, because {use}; use another branch, such as'
        f' "clusters/{config_object.key.name}"'
    )
    return ControllerCodes.NAME_NOT_USABLE.finding(message, config_object.location_of(("spec", "git", "branch")))
