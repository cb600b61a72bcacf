"""The built-in functions with their versions, by the base name of the function image."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.packages.functions.apply_replacements import apply_replacements
from reconciler.packages.functions.function import FunctionVersion, KrmFunction
from reconciler.packages.functions.google_cloud import enable_gcp_services, set_enforcement_action, set_project_id
from reconciler.packages.functions.kubeconform import describe_installed_schemas, kubeconform, kubeval
from reconciler.packages.functions.labels_and_annotations import delete_annotations, set_annotations, set_labels
from reconciler.packages.functions.registry import FunctionRelease
from reconciler.packages.functions.resource_names import ensure_name_substring, set_name_prefix
from reconciler.packages.functions.resources import gen_pkg_context, remove_local_config_resources, upsert_resource
from reconciler.packages.functions.search_replace import search_replace
from reconciler.packages.functions.set_image import set_image
from reconciler.packages.functions.set_namespace import set_namespace
from reconciler.packages.functions.setters import apply_setters, create_setters, list_setters
from reconciler.packages.functions.starlark import run_starlark


def _list_releases_until(function: KrmFunction, until: FunctionVersion) -> tuple[FunctionRelease, ...]:
    # Use one implementation for all versions, because the function reads the version from `FunctionContext.version`.
    return (FunctionRelease(function, (0, 0, 0), until),)


RELEASES: Mapping[str, tuple[FunctionRelease, ...]] = {
    "apply-replacements": _list_releases_until(apply_replacements, (0, 2, 0)),
    "apply-setters": _list_releases_until(apply_setters, (0, 3, 0)),
    "create-setters": _list_releases_until(create_setters, (0, 2, 0)),
    "delete-annotations": _list_releases_until(delete_annotations, (0, 2, 0)),
    "enable-gcp-services": _list_releases_until(enable_gcp_services, (0, 2, 0)),
    "ensure-name-substring": _list_releases_until(ensure_name_substring, (0, 3, 0)),
    "gen-pkg-context": _list_releases_until(gen_pkg_context, (1, 0, 0)),
    "kubeconform": (FunctionRelease(kubeconform, (0, 0, 0), (0, 2, 0), describe_installed_schemas),),
    "kubeval": (FunctionRelease(kubeval, (0, 0, 0), (0, 4, 0), describe_installed_schemas),),
    "list-setters": _list_releases_until(list_setters, (0, 2, 0)),
    "remove-local-config-resources": _list_releases_until(remove_local_config_resources, (0, 2, 0)),
    "search-replace": _list_releases_until(search_replace, (0, 3, 0)),
    "set-annotations": _list_releases_until(set_annotations, (0, 2, 0)),
    "set-enforcement-action": _list_releases_until(set_enforcement_action, (0, 2, 0)),
    "set-image": _list_releases_until(set_image, (0, 2, 0)),
    "set-labels": _list_releases_until(set_labels, (0, 3, 0)),
    "set-name-prefix": _list_releases_until(set_name_prefix, (0, 2, 0)),
    "set-namespace": _list_releases_until(set_namespace, (0, 5, 0)),
    "set-project-id": _list_releases_until(set_project_id, (0, 3, 0)),
    "starlark": _list_releases_until(run_starlark, (0, 6, 0)),
    "upsert-resource": (FunctionRelease(upsert_resource, (0, 2, 0), (0, 3, 0)),),
}
