"""Resources of the config that are placed on clusters: their labels, their annotation and their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import File
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.controllers.clusters.inventory import ClusterInventory
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.placement.codes import PlacementCodes
from reconciler.controllers.placement.model import (
    CLUSTER_PROPAGATION_POLICY_KIND,
    CLUSTER_SCOPED_NAMESPACE,
    PROPAGATION_POLICY_KIND,
    PlacementResource,
    PlacementResources,
)
from reconciler.controllers.placement.propagation_policies import (
    PropagationPolicies,
    build_propagation_policy_key,
    read_propagation_policies,
)
from reconciler.krm.field_text import quote_value, suggest_name
from reconciler.krm.findings import Finding, FindingCode, select_errors
from reconciler.krm.names import validate_name_segment
from reconciler.krm.objects import ObjectKey
from reconciler.krm.schema import find_kind_scope
from reconciler.krm.yaml import emit
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.file_names import MAX_FILE_NAME_LENGTH, format_full_file_name
from reconciler.packages.sops import SOPS, is_sops_document
from reconciler.packages.source_codes import SourceCodes

PROPAGATION_POLICY_LABEL = "kubeadmiral.io/propagation-policy-name"
CLUSTER_PROPAGATION_POLICY_LABEL = "kubeadmiral.io/cluster-propagation-policy-name"
CLUSTERS_ANNOTATION = "reconciler.dev/clusters"
ALL_CLUSTERS = "*"
# API groups whose objects are inputs of other controllers, such as package variants, plugins and components.
_CONTROLLER_GROUPS = (PORCH_GROUP, "greenhouse.sap", "platform", "reconciler.dev")
_PLACEMENT_METADATA = (
    ("labels", PROPAGATION_POLICY_LABEL),
    ("labels", CLUSTER_PROPAGATION_POLICY_LABEL),
    ("annotations", CLUSTERS_ANNOTATION),
)
_MAX_LISTED = 8


@dataclass(frozen=True)
class PlacementRequest:
    """Placement that a resource requests: cluster names, a propagation policy, or both. `*` means all clusters."""

    clusters: tuple[str, ...] = ()
    policy: ObjectKey | None = None


def has_placement(config_object: ConfigObject) -> bool:
    """Return whether an object has a propagation policy label or the annotation `reconciler.dev/clusters`."""
    return any(key in _get_metadata_entries(config_object, field) for field, key in _PLACEMENT_METADATA)


def check_placeable(config_object: ConfigObject) -> Finding | None:
    """Return a warning if an object has a placement, but objects of its kind are not copied to clusters.

    Return None if the object can be copied.
    """
    if is_controller_input(config_object.key):
        reason = (
            f"a controller reads objects of the kind {config_object.key.kind} (group {config_object.key.group}). These"
            " objects are not copied to clusters"
        )
    elif _is_list(config_object):
        reason = "Lists and their items are not placed. Next step: write each item as a separate document"
    else:
        return None
    field, key = next(
        (field, key) for field, key in _PLACEMENT_METADATA if key in _get_metadata_entries(config_object, field)
    )
    return PlacementCodes.NOT_PLACED.finding(
        f"metadata.{field}.{key} has no effect, because {reason}", config_object.location_of(("metadata", field, key))
    )


def is_controller_input(key: ObjectKey) -> bool:
    """Return whether a controller reads objects of this kind. Such objects are not copied to clusters."""
    is_kubeadmiral_input = key.group == KUBEADMIRAL_GROUP and (
        key.kind.endswith("Policy") or key.kind == "FederatedCluster"
    )
    return is_kubeadmiral_input or key.group in _CONTROLLER_GROUPS


def read_placement_request(config_object: ConfigObject) -> tuple[PlacementRequest, tuple[Finding, ...]]:
    """Return the placement that a resource requests, and findings. If there is an error, the clusters are unknown."""
    clusters, cluster_findings = _read_clusters_annotation(config_object)
    policy, policy_findings = _read_policy_label(config_object)
    return PlacementRequest(clusters, policy), (*cluster_findings, *policy_findings)


def get_package_namespace(key: ObjectKey) -> str:
    """Return the namespace in the path of a resource's package. For cluster-scoped kinds, return `_cluster`."""
    return (key.namespace if find_kind_scope(key.group, key.kind) != "cluster" else "") or CLUSTER_SCOPED_NAMESPACE


def _read_policy_label(config_object: ConfigObject) -> tuple[ObjectKey | None, tuple[Finding, ...]]:
    """Return the key of the propagation policy that a resource uses, and findings about the labels of the resource.

    One label of a resource can contain the name of a PropagationPolicy, and another label the name of a
    ClusterPropagationPolicy. As in KubeAdmiral's scheduler (GetMatchedPolicyKey), a namespaced resource with both
    labels uses the PropagationPolicy, and a cluster-scoped resource uses the ClusterPropagationPolicy. Return None if
    no label is valid.
    """
    namespace = get_package_namespace(config_object.key)
    effective_label, ignored_label, kind = (
        PROPAGATION_POLICY_LABEL,
        CLUSTER_PROPAGATION_POLICY_LABEL,
        PROPAGATION_POLICY_KIND,
    )
    reason = f"{PROPAGATION_POLICY_LABEL} takes precedence"
    if namespace == CLUSTER_SCOPED_NAMESPACE or PROPAGATION_POLICY_LABEL not in _get_metadata_entries(
        config_object, "labels"
    ):
        effective_label, ignored_label, kind = (
            CLUSTER_PROPAGATION_POLICY_LABEL,
            PROPAGATION_POLICY_LABEL,
            CLUSTER_PROPAGATION_POLICY_KIND,
        )
        reason = "the resource has no namespace"
    findings = []
    if ignored_label in _get_metadata_entries(config_object, "labels"):
        findings.append(
            _create_label_finding(
                config_object, PlacementCodes.PROPAGATION_LABEL_IGNORED, ignored_label, f"is ignored, because {reason}"
            )
        )
    name = _get_metadata_entries(config_object, "labels").get(effective_label, "")
    if effective_label not in _get_metadata_entries(config_object, "labels"):
        return None, tuple(findings)
    if not isinstance(name, str) or not name:
        findings.append(
            _create_label_finding(
                config_object,
                PlacementCodes.PLACEMENT_INVALID,
                effective_label,
                f"must be the name of a {kind}, but is {quote_value(name)}",
            )
        )
        return None, tuple(findings)
    return build_propagation_policy_key(kind, namespace, name), tuple(findings)


def _read_clusters_annotation(config_object: ConfigObject) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    annotations = _get_metadata_entries(config_object, "annotations")
    if CLUSTERS_ANNOTATION not in annotations:
        return (), ()
    value = annotations[CLUSTERS_ANNOTATION]
    names = [name.strip() for name in value.split(",")] if isinstance(value, str) else [""]
    if all(names):
        return tuple(dict.fromkeys(names)), ()
    message = (
        f"metadata.annotations.{CLUSTERS_ANNOTATION} must contain cluster names separated by commas, or"
        f' "{ALL_CLUSTERS}" for all, but is {quote_value(value)}; to place the resource on no cluster, omit'
        " the annotation"
    )
    location = config_object.location_of(("metadata", "annotations", CLUSTERS_ANNOTATION))
    return (), (PlacementCodes.PLACEMENT_INVALID.finding(message, location),)


def _create_label_finding(config_object: ConfigObject, code: FindingCode, label: str, message: str) -> Finding:
    return code.finding(f"metadata.labels.{label} {message}", config_object.location_of(("metadata", "labels", label)))


def _get_metadata_entries(config_object: ConfigObject, field: str) -> Mapping[Any, Any]:
    entries = config_object.data["metadata"].get(field)
    return entries if isinstance(entries, Mapping) else {}


def _is_list(config_object: ConfigObject) -> bool:
    return config_object.key.kind.endswith("List") and isinstance(config_object.data.get("items"), list)


def build_resource_file(config_object: ConfigObject) -> File:
    """Return the file of a resource: its unchanged YAML document, or generated YAML if the source is JSON."""
    text = (
        emit(config_object.data)
        if config_object.file.endswith(".json")
        else config_object.document.as_only_document().text
    )
    return File(text.encode())


def read_placed_resources(
    catalog: Catalog,
    inventory: ClusterInventory,
    propagations: PropagationPolicies,
    clusters_by_policy: Mapping[ObjectKey, frozenset[str]],
) -> PlacementResources:
    """Return all objects of the config that are placed on clusters.

    `clusters_by_policy` contains the clusters that each valid policy selects.
    """
    resources: list[PlacementResource] = []
    findings: list[Finding] = []
    select_policies = _create_policy_filter(catalog, propagations)
    mac_counts = _count_macs(catalog)
    for config_object in filter(has_placement, catalog.objects.values()):
        if finding := check_placeable(config_object) or _check_path(config_object):
            findings.append(finding)
        else:
            resource = PlacementResource(
                config_object, get_package_namespace(config_object.key), build_resource_file(config_object)
            )
            visible = select_policies(config_object)
            placed, resource_findings = _resolve_placement(resource, inventory, visible, clusters_by_policy)
            if finding := _check_mac(config_object, mac_counts):
                # Set `clusters` to None (unknown), so that the clusters keep the published file of the resource.
                placed, resource_findings = replace(placed, clusters=None), (*resource_findings, finding)
            findings += resource_findings
            resources.append(placed)
    duplicates = {key: copies for key, copies in catalog.copies.items() if not is_controller_input(key)}
    policies = [config_object.policy for config_object in resources]
    policies += (
        read_placement_request(config_object)[0].policy for copies in duplicates.values() for config_object in copies
    )
    shared, shared_findings = _find_shared_files(resources)
    ambiguous = shared.union(duplicates)
    unambiguous = tuple(config_object for config_object in resources if config_object.key not in ambiguous)
    return PlacementResources(unambiguous, ambiguous, frozenset(filter(None, policies)), (*findings, *shared_findings))


def _count_macs(catalog: Catalog) -> Mapping[tuple[str, str], int]:
    """Map each pair of file and MAC to the number of SOPS documents in this file with this MAC.

    SOPS encrypts all documents of a file together. They then have one common MAC.
    """
    objects = (config_object for config_object in catalog.objects.values() if is_sops_document(config_object.data))
    return Counter(map(_get_mac_key, objects))


def _get_mac_key(config_object: ConfigObject) -> tuple[str, str]:
    return config_object.file, str(config_object.data[SOPS]["mac"])


def _check_mac(config_object: ConfigObject, mac_counts: Mapping[tuple[str, str], int]) -> Finding | None:
    """Return an error if SOPS encrypted a resource together with other resources of its file.

    SOPS cannot decrypt such a resource if it is copied to a file of its own.
    """
    if not is_sops_document(config_object.data) or mac_counts[_get_mac_key(config_object)] == 1:
        return None
    message = (
        "SOPS encrypted several documents of this file with one MAC, so that SOPS cannot decrypt a single document. The"
        " resource is not placed. Next step: move each document to its own file, and encrypt the files again"
    )
    return SourceCodes.SOPS_MAC_BROKEN.finding(message, config_object.location_of((SOPS, "mac")))


def _create_policy_filter(
    catalog: Catalog, propagations: PropagationPolicies
) -> Callable[[ConfigObject], PropagationPolicies]:
    """Return a function that returns, for a resource, all policies that the tenant of the resource may use."""
    if not catalog.tenants:
        return lambda resource: propagations
    read = cache(lambda tenant: read_propagation_policies(catalog.select_visible(tenant)))
    return lambda resource: read(catalog.tenants.find_owner(resource.file))


def _resolve_placement(
    resource: PlacementResource,
    inventory: ClusterInventory,
    propagations: PropagationPolicies,
    clusters_by_policy: Mapping[ObjectKey, frozenset[str]],
) -> tuple[PlacementResource, tuple[Finding, ...]]:
    """Return the resource with the clusters that its annotation and its propagation policy select.

    If the annotation or the policy is invalid, the clusters are unknown.
    """
    request, findings = read_placement_request(resource.config_object)
    resource = replace(resource, policy=request.policy)
    findings = (
        *findings,
        *_check_cluster_names(resource.config_object, request, inventory),
        *_check_policy(resource, propagations),
    )
    if select_errors(findings):
        return resource, findings
    all_clusters = frozenset(inventory.clusters)
    named_clusters = all_clusters if ALL_CLUSTERS in request.clusters else all_clusters.intersection(request.clusters)
    policy_clusters = clusters_by_policy[request.policy] if request.policy else frozenset()
    policy_names = propagations.valid[request.policy].targets.clusters if request.policy else ()
    names = (*request.clusters, *policy_names)
    unknown = tuple(name for name in names if name != ALL_CLUSTERS and not _is_known(name, inventory))
    return replace(resource, clusters=named_clusters | policy_clusters, unknown_clusters=unknown), findings


def _is_known(name: str, inventory: ClusterInventory) -> bool:
    return name in inventory.clusters or name in inventory.uncertain_names


def _check_path(config_object: ConfigObject) -> Finding | None:
    namespace = get_package_namespace(config_object.key)
    if namespace != CLUSTER_SCOPED_NAMESPACE and (error := validate_name_segment(namespace)):
        message = f"metadata.namespace is used as the name of a folder on a branch. Therefore, {error}"
        return PlacementCodes.RESOURCE_PATH_NOT_USABLE.finding(
            message, config_object.location_of(("metadata", "namespace"))
        )
    if len(name := format_full_file_name(config_object.key)) > MAX_FILE_NAME_LENGTH:
        message = (
            f"metadata.name is too long, because the file name of the resource must have at most {MAX_FILE_NAME_LENGTH}"
            f' characters, but is "{name}"'
        )
        return PlacementCodes.RESOURCE_PATH_NOT_USABLE.finding(message, config_object.location_of(("metadata", "name")))
    return None


def _check_cluster_names(
    config_object: ConfigObject, request: PlacementRequest, inventory: ClusterInventory
) -> Iterator[Finding]:
    field = ("metadata", "annotations", CLUSTERS_ANNOTATION)
    for name in request.clusters:
        if name != ALL_CLUSTERS and not _is_known(name, inventory):
            message = (
                f'metadata.annotations.{CLUSTERS_ANNOTATION} contains "{name}", but there is no cluster with this name'
                f"{suggest_name(name, sorted(inventory.clusters))}"
            )
            yield ControllerCodes.UNKNOWN_CLUSTER.finding(message, config_object.location_of(field))


def _check_policy(resource: PlacementResource, propagations: PropagationPolicies) -> Iterator[Finding]:
    """Yield an error if a resource names a policy that does not exist, is invalid or is defined twice."""
    config_object, key = resource.config_object, resource.policy
    if key is None or (key in propagations.valid and key not in propagations.duplicates):
        return
    label = (
        CLUSTER_PROPAGATION_POLICY_LABEL if key.kind == CLUSTER_PROPAGATION_POLICY_KIND else PROPAGATION_POLICY_LABEL
    )
    start = f"metadata.labels.{label} refers to {key}"
    location = config_object.location_of(("metadata", "labels", label))
    if key in propagations.duplicates:
        yield PlacementCodes.PROPAGATION_POLICY_UNUSABLE.finding(
            f"{start}, but this policy is defined twice in the config", location
        )
    elif key in propagations.invalid:
        yield PlacementCodes.PROPAGATION_POLICY_UNUSABLE.finding(f"{start}, but this policy is invalid", location)
    else:
        unread = "" if propagations.is_complete else " or is in an unreadable file"
        message = f"{start}, but this policy does not exist{unread}{_list_existing_policies(key, propagations)}"
        yield PlacementCodes.PROPAGATION_POLICY_NOT_FOUND.finding(message, location)


def _list_existing_policies(key: ObjectKey, propagations: PropagationPolicies) -> str:
    names = sorted(
        policy_key.name
        for policy_key in propagations.valid
        if (policy_key.kind, policy_key.namespace) == (key.kind, key.namespace)
    )
    return f"; existing policies: {', '.join(names)}" if 0 < len(names) <= _MAX_LISTED else ""


def _find_shared_files(resources: Sequence[PlacementResource]) -> tuple[frozenset[ObjectKey], list[Finding]]:
    """Return the resources that would be written to the same file of a package, and an error for each of them."""
    resources_by_file: dict[tuple[str, str], list[PlacementResource]] = {}
    for resource in resources:
        resources_by_file.setdefault((resource.namespace, format_full_file_name(resource.key)), []).append(resource)
    shared = {location: sharing for location, sharing in resources_by_file.items() if len(sharing) > 1}
    findings: list[Finding] = []
    for (_, name), sharing in shared.items():
        members = " and ".join(
            f"{member.key} at {member.config_object.file}:{member.config_object.document.line}" for member in sharing
        )
        message = f'{members} would be written to the same file "{name}". Next step: use different names'
        findings += (
            PlacementCodes.RESOURCE_PATH_NOT_USABLE.finding(message, member.config_object.location)
            for member in sharing
        )
    return frozenset(member.key for sharing in shared.values() for member in sharing), findings
