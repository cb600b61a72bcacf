"""The PackageStatus file, which is next to a package on its branch and records how the package was rendered.

The file has a fixed order of fields and no empty fields. This module also lists the dependencies of a render.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reconciler.api.base import omit_empty
from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.trace import ABSENT_FINGERPRINT, Trace
from reconciler.controllers.override_policies.model import CLUSTER_OVERRIDE_POLICY_KIND
from reconciler.controllers.results import UpstreamPackage, Variant, format_upstream_status
from reconciler.krm.findings import Finding, Severity
from reconciler.krm.json_text import compute_digest
from reconciler.krm.schema import find_kind_scope
from reconciler.krm.yaml import emit
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.output.changes.package_changes import read_source_locks, read_upstream_lock
from reconciler.output.json_data import mask_trace
from reconciler.output.status.package_sections import build_children_data
from reconciler.packages.functions.registry import format_program_trace_key
from reconciler.planning.model.outcomes import Draft, PackageRender
from reconciler.planning.model.sources import serialize_conflict
from reconciler.planning.model.targets import Target
from reconciler.redaction import MASK

# Cache digests, because both the status file and the commit message of a draft contain the digest.
_CACHED_DIGESTS = 16

PACKAGE_STATUS_API_VERSION = "reconciler.dev/v1alpha1"
PACKAGE_STATUS_KIND = "PackageStatus"
_ANNOTATIONS = {"config.kubernetes.io/local-config": "true", "argocd.argoproj.io/hook": "Skip"}


def compute_inputs_digest(trace: Trace) -> str:
    """Return the digest of the dependencies in a trace as `sha256:<hex>`. Hashes of Secrets are masked first."""
    return _compute_digest(tuple(trace.items()))


@cached(_CACHED_DIGESTS)
def _compute_digest(dependencies: tuple[tuple[str, str], ...]) -> str:
    return compute_digest(mask_trace(dict(dependencies)))


def build_inputs_data(variant: Variant, rendered: PackageRender, trace: Trace, config: str) -> dict[str, Any]:
    """Return the field `inputs` of the status file: the config, the digest of all dependencies, and the config objects.

    The config objects are the objects that the render used and the objects that define the package variant.
    """
    sources = variant.provenance.list_objects() if variant.provenance else []
    objects = [
        *_build_objects(rendered, trace),
        *({name: value for name, value in source.items() if value} for source in sources),
    ]
    source = _build_source(variant.upstream, trace) if variant.upstream else {}
    return {"config": config, "digest": compute_inputs_digest(trace), "source": source, "objects": objects}


def _build_source(upstream: UpstreamPackage, trace: Trace) -> dict[str, Any]:
    """Return data about the render of an upstream: its kind, and for a chart its engine and its options.

    Return {} for a kpt package.
    """
    if upstream.sources:
        sources = [
            {"name": source.name, **_build_source(source.upstream, trace)}
            for source in upstream.sources
            if source.has_resources
        ]
        engine: dict[str, Any] = next((source["engine"] for source in sources if "engine" in source), {})
        return omit_empty({"engine": engine, "sources": sources})
    if upstream.kind == "kpt":
        return {}
    chart = upstream.chart
    if chart is None:
        return {"kind": upstream.kind}
    name, _, version = trace.get(format_program_trace_key("helm"), "").partition("/")
    options = {
        "releaseName": chart.release_name,
        "namespace": chart.namespace,
        "kubeVersion": chart.kube_version,
        "apiVersions": list(chart.api_versions),
        "valuesDigest": upstream.values.digest,
    }
    return omit_empty({"kind": upstream.kind, "engine": omit_empty({"name": name, "version": version}), **options})


def _build_objects(rendered: PackageRender, trace: Trace) -> Iterator[dict[str, str]]:
    for dependency in list_object_dependencies(trace):
        if dependency.fingerprint != ABSENT_FINGERPRINT:
            fields = {
                "kind": dependency.kind,
                "namespace": dependency.effective_namespace,
                "name": dependency.name,
                "file": rendered.input_files.get((dependency.kind, dependency.namespace, dependency.name)),
                "hash": MASK if dependency.kind == "Secret" else dependency.fingerprint,
            }
            yield {name: value for name, value in fields.items() if value}


@dataclass(frozen=True)
class ObjectDependency:
    """A config object that a render depends on.

    Attributes:
        namespace: The namespace of the lookup. Cluster-scoped kinds use the namespace "default".
        fingerprint: The hash of the object, or `ABSENT_FINGERPRINT` if the object does not exist.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    fingerprint: str

    @property
    def effective_namespace(self) -> str:
        """The namespace of the object. The namespace is "" for cluster-scoped kinds."""
        return get_effective_namespace(self.api_version, self.kind, self.namespace)


def get_effective_namespace(api_version: str, kind: str, namespace: str) -> str:
    """Return `namespace` for objects of namespaced kinds, and "" for objects of cluster-scoped kinds."""
    group = api_version.rpartition("/")[0]
    is_cluster_override_policy = (group, kind) == (KUBEADMIRAL_GROUP, CLUSTER_OVERRIDE_POLICY_KIND)
    return "" if is_cluster_override_policy or find_kind_scope(group, kind) == "cluster" else namespace


def list_object_dependencies(trace: Trace) -> Iterator[ObjectDependency]:
    """Yield the config objects in a trace, sorted.

    The fingerprint of an override policy covers only the effect of the policy on one cluster, not the whole object.
    """
    for dependency, fingerprint in sorted(trace.items()):
        match dependency.split(" ", 4):
            case ["object", api_version, kind, namespace, name]:
                yield ObjectDependency(api_version, kind, namespace, name, fingerprint)
            case ["policy", api_version, kind, namespace, name_and_cluster]:
                name = name_and_cluster.partition(" ")[0]
                yield ObjectDependency(api_version, kind, namespace, name, fingerprint)


def build_package_status(draft: Draft, target: Target, config: str) -> bytes:
    """Return the PackageStatus file of a draft. Equal drafts have equal files, because the file contains no time.

    Args:
        config: The config commit, or `tree:<id>` if the config is a plain folder.
    """
    package = draft.variant.target.package
    document = {
        "apiVersion": PACKAGE_STATUS_API_VERSION,
        "kind": PACKAGE_STATUS_KIND,
        "metadata": {"name": package.replace("/", "."), "annotations": _ANNOTATIONS},
        "status": _insert_draft_metadata(draft, omit_empty(_build_status(draft, target, config))),
    }
    return emit(document).encode()


def _build_status(draft: Draft, target: Target, config: str) -> dict[str, Any]:
    rendered, templates, provenance = draft.rendered, draft.rendered.templates, draft.variant.provenance
    return {
        "repository": target.name,
        "package": draft.variant.target.package,
        "owner": draft.variant.owner.as_data(),
        "task": draft.task,
        "upstream": omit_empty({"from": _build_previous_upstream(draft), "to": draft.variant.source.as_status()}),
        "trees": {"base": draft.base_tree, "merged": draft.merged_tree, "rendered": rendered.files.id},
        "inputs": omit_empty(build_inputs_data(draft.variant, rendered, draft.record.trace, config)),
        "conditions": [omit_empty(condition.as_data()) for condition in rendered.conditions],
        "readinessGates": _build_gates(rendered),
        "injected": build_injected_data(rendered),
        "conflicts": [serialize_conflict(conflict) for conflict in rendered.conflicts],
        "appliedOverrides": provenance.list_applied_overrides() if provenance else [],
        "layers": [*(provenance.list_layers() if provenance else ()), *(templates.as_data() if templates else ())],
        "overrides": [dict(override) for override in rendered.overrides],
        "templates": build_children_data(templates.effects if templates else ()),
        "results": [dict(result) for result in rendered.function_results],
        "warnings": list(_build_warnings(rendered.findings)),
    }


def _insert_draft_metadata(draft: Draft, status: dict[str, Any]) -> dict[str, Any]:
    """Insert the labels and annotations of the draft after the field `task`.

    For a package with an upstream, insert both fields even if they are empty. If the status file of such a package has
    neither field, an earlier version of the reconciler wrote it, and the labels are unknown.
    """
    metadata = {"labels": dict(draft.labels), "annotations": dict(draft.annotations)}
    if draft.variant.upstream is None:
        metadata = omit_empty(metadata)
    fields: dict[str, Any] = {}
    for name, value in status.items():
        fields |= {name: value, **metadata} if name == "task" else {name: value}
    return fields


def _build_previous_upstream(draft: Draft) -> dict[str, Any]:
    """Return the upstream lock of the previous version. Add the tree of the upstream if the tree is known."""
    if locks := read_source_locks(draft.previous_files):
        return {"sources": [omit_empty({"name": name, **lock}) for name, lock in locks.items()]}
    lock = read_upstream_lock(draft.previous_files)
    fields = {name: lock[name] for name in ("repo", "directory", "ref", "commit") if name in lock}
    # A person can have edited `upstreamLock` in the files of the previous version. The recorded tree belongs to
    # `upstreamLock` only if these files are equal to a recorded render.
    versions = [
        version
        for version in (draft.record.draft_version, draft.record.published_version)
        if version and version.rendered == draft.previous_files.id
    ]
    data = {**fields, "tree": versions[0].base if versions and fields else ""}
    upstream = draft.variant.upstream
    return omit_empty(format_upstream_status(upstream.type, data) if upstream else data)


def build_injected_data(rendered: PackageRender) -> list[dict[str, str]]:
    """Return the field `injected` of the status file, with masked hashes of Secrets."""
    return [_mask_injection(injection.as_data()) for injection in rendered.injections]


def _mask_injection(data: dict[str, str]) -> dict[str, str]:
    return omit_empty({**data, "hash": MASK} if data["object"].startswith("Secret/") else data)


def _build_gates(rendered: PackageRender) -> list[dict[str, Any]]:
    unmet = rendered.unmet_gates
    return [{"conditionType": gate, "met": gate not in unmet} for gate in rendered.readiness_gates]


def _build_warnings(findings: Iterable[Finding]) -> Iterable[dict[str, Any]]:
    for finding in findings:
        if finding.severity is not Severity.ERROR:
            location = finding.location
            yield omit_empty({
                "code": finding.code, "severity": finding.severity.value, "message": finding.message,
                "object": location.object, "file": location.file, "pointer": location.pointer,
            })  # fmt: skip
