"""The functions that we bring along, by the base names of the images that they stand for (kpt.md 13)."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.packages.functions.apply_replacements import apply_replacements
from reconciler.packages.functions.apply_setters import apply_setters
from reconciler.packages.functions.create_setters import create_setters
from reconciler.packages.functions.delete_annotations import delete_annotations
from reconciler.packages.functions.enable_gcp_services import enable_gcp_services
from reconciler.packages.functions.ensure_name_substring import ensure_name_substring
from reconciler.packages.functions.function import Function, Version
from reconciler.packages.functions.gen_pkg_context import gen_pkg_context
from reconciler.packages.functions.kubeconform import installed, kubeconform, kubeval
from reconciler.packages.functions.list_setters import list_setters
from reconciler.packages.functions.registry import Release
from reconciler.packages.functions.remove_local_config_resources import remove_local_config_resources
from reconciler.packages.functions.search_replace import search_replace
from reconciler.packages.functions.set_annotations import set_annotations
from reconciler.packages.functions.set_enforcement_action import set_enforcement_action
from reconciler.packages.functions.set_image import set_image
from reconciler.packages.functions.set_labels import set_labels
from reconciler.packages.functions.set_name_prefix import set_name_prefix
from reconciler.packages.functions.set_namespace import set_namespace
from reconciler.packages.functions.set_project_id import set_project_id
from reconciler.packages.functions.starlark import run_starlark
from reconciler.packages.functions.upsert_resource import upsert_resource


def _all(function: Function, until: Version) -> tuple[Release, ...]:
    # these functions look at their version themselves
    return (Release(function, (0, 0, 0), until),)


RELEASES: Mapping[str, tuple[Release, ...]] = {
    "apply-replacements": _all(apply_replacements, (0, 2, 0)),
    "apply-setters": _all(apply_setters, (0, 3, 0)),
    "create-setters": _all(create_setters, (0, 2, 0)),
    "delete-annotations": _all(delete_annotations, (0, 2, 0)),
    "enable-gcp-services": _all(enable_gcp_services, (0, 2, 0)),
    "ensure-name-substring": _all(ensure_name_substring, (0, 3, 0)),
    "gen-pkg-context": _all(gen_pkg_context, (1, 0, 0)),
    "kubeconform": (Release(kubeconform, (0, 0, 0), (0, 2, 0), installed),),
    "kubeval": (Release(kubeval, (0, 0, 0), (0, 4, 0), installed),),
    "list-setters": _all(list_setters, (0, 2, 0)),
    "remove-local-config-resources": _all(remove_local_config_resources, (0, 2, 0)),
    "search-replace": _all(search_replace, (0, 3, 0)),
    "set-annotations": _all(set_annotations, (0, 2, 0)),
    "set-enforcement-action": _all(set_enforcement_action, (0, 2, 0)),
    "set-image": _all(set_image, (0, 2, 0)),
    "set-labels": _all(set_labels, (0, 3, 0)),
    "set-name-prefix": _all(set_name_prefix, (0, 2, 0)),
    "set-namespace": _all(set_namespace, (0, 5, 0)),
    "set-project-id": _all(set_project_id, (0, 3, 0)),
    "starlark": _all(run_starlark, (0, 6, 0)),
    "upsert-resource": (Release(upsert_resource, (0, 2, 0), (0, 3, 0)),),
}
