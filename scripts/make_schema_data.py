"""Write the data of Kubernetes' own kinds in reconciler/krm/schema.

merge_schemas.json contains the lists that are merged by element, field_names.json the names of all fields.

Run `python scripts/make_schema_data.py` with kubernetes-validate installed (the extra `k8s-schemas`) and review the
diff; docs/decisions/007-compact-schema-data.md gives the reason for this format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib import metadata, resources
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "reconciler/krm/schema/merge_schemas.json"
FIELD_NAMES = TARGET.with_name("field_names.json")
OBJECT_META = "meta.v1.ObjectMeta"
# The shared entry of kinds whose only such lists are those of their metadata.
OBJECT = {"metadata": OBJECT_META}

# versions that no schema of the package has; their kinds are taken for those of today, in this group
OLDER = {
    "admissionregistration.k8s.io/v1beta1": "MutatingWebhookConfiguration ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/v1beta1": "CustomResourceDefinition",
    "apiregistration.k8s.io/v1beta1": "APIService",
    "apps/v1beta1": "ControllerRevision Deployment StatefulSet",
    "apps/v1beta2": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "autoscaling/v2beta1": "HorizontalPodAutoscaler",
    "batch/v1beta1": "CronJob",
    "batch/v2alpha1": "CronJob",
    "certificates.k8s.io/v1beta1": "CertificateSigningRequest",
    "coordination.k8s.io/v1beta1": "Lease",
    "discovery.k8s.io/v1beta1": "EndpointSlice",
    "events.k8s.io/v1beta1": "Event",
    "extensions/v1beta1": "DaemonSet Deployment Ingress NetworkPolicy PodSecurityPolicy ReplicaSet",
    "flowcontrol.apiserver.k8s.io/v1alpha1": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io/v1beta1": "Ingress IngressClass",
    "node.k8s.io/v1alpha1": "RuntimeClass",
    "node.k8s.io/v1beta1": "RuntimeClass",
    "policy/v1beta1": "PodDisruptionBudget PodSecurityPolicy",
    "rbac.authorization.k8s.io/v1alpha1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "rbac.authorization.k8s.io/v1beta1": "ClusterRole ClusterRoleBinding Role RoleBinding",
    "scheduling.k8s.io/v1alpha1": "PriorityClass",
    "scheduling.k8s.io/v1beta1": "PriorityClass",
    "storage.k8s.io/v1alpha1": "CSIStorageCapacity VolumeAttachment",
    "storage.k8s.io/v1beta1": "CSIDriver CSINode StorageClass VolumeAttachment",
}
MOVED = {
    ("extensions", "DaemonSet"): "apps",
    ("extensions", "Deployment"): "apps",
    ("extensions", "ReplicaSet"): "apps",
}
_DEFAULT = re.compile(r'\bdefault(?:s to|ed to| is) "?(\w+)\b', re.IGNORECASE)
_STABILITY = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")

Definitions = Mapping[str, Mapping[str, Any]]
Kind = tuple[str, str, str]
"""group, version, kind"""


def make() -> dict[str, Any]:
    """Return the data from the newest available schemas. Older schemas only name older versions of the kinds."""
    folders = sorted(_folders(), key=_minor, reverse=True)
    newest = _definitions(folders[0])
    fields = _mergeable(newest)
    kinds = _kinds(newest)
    older = {kind for folder in folders[1:] for kind in _kinds(_definitions(folder))} | set(_older())
    shown = {kind: kinds.get(kind) or _current(kind, kinds) for kind in sorted(older | set(kinds))}
    named = {kind: "Object" if fields.get(name, OBJECT) == OBJECT else name for kind, name in shown.items()}
    return {
        "source": f"kubernetes-validate {metadata.version('kubernetes-validate')}",
        "kinds": _by_api_version(named),
        "fields": _reachable({**fields, "Object": OBJECT}, set(named.values())),
    }


def text(data: Mapping[str, Any]) -> str:
    """Return the data as it is committed: one line for each definition."""
    sections = [f'"source": {json.dumps(data["source"])}', *(_section(data, name) for name in ("kinds", "fields"))]
    return "{\n" + ",\n".join(sections) + "\n}\n"


def make_field_names() -> dict[str, Any]:
    """Return the field names of every kind and definition, from the schemas of all releases together.

    A cluster may run any of these releases, so that a field of one of them is a field. `kinds` contains only API
    versions that a release serves: an older version may have other fields than its kind has today.
    """
    all_kinds: dict[Kind, str] = {}
    fields: dict[str, dict[str, str]] = {}
    for folder in sorted(_folders(), key=_minor):
        definitions = _definitions(folder)
        all_kinds |= _kinds(definitions)
        for name, schema in definitions.items():
            known = fields.setdefault(_short(name), {})
            for field, property_ in schema.get("properties", {}).items():
                known[field] = _merged_type(known.get(field), _field_type(property_, definitions))
    return {
        "source": f"kubernetes-validate {metadata.version('kubernetes-validate')}",
        "kinds": _by_api_version(all_kinds),
        "fields": {name: _field_text(fields[name]) for name in _named_from(fields, set(all_kinds.values()))},
    }


def _field_type(schema: Mapping[str, Any], definitions: Definitions) -> str:
    """Return the type of a field: a definition, `[]` and the definition of items, or "" where any key may be."""
    if schema.get("type") == "array" or "items" in schema:
        items = _target(schema.get("items", {}))
        return f"[]{_short(items)}" if definitions.get(items, {}).get("properties") else "[]"
    target = _target(schema)
    return _short(target) if definitions.get(target, {}).get("properties") else ""


def _merged_type(known: str | None, content: str) -> str:
    # A field with different types in two releases may contain anything.
    return content if known in (None, content) else ""


def _field_text(fields: Mapping[str, str]) -> str:
    return " ".join(f"{name}:{kind}" if kind else name for name, kind in sorted(fields.items()))


def _named_from(fields: Mapping[str, Mapping[str, str]], roots: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = set(roots)
    while waiting:
        reached |= waiting
        named = {kind.removeprefix("[]") for name in waiting for kind in fields[name].values()}
        waiting = named - reached - {""}
    return reached


def _section(data: Mapping[str, Any], name: str) -> str:
    lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(data[name].items()))
    return f'"{name}": {{\n' + ",\n".join(lines) + "\n}"


def _folders() -> Iterator[Any]:
    root = resources.files("kubernetes_validate").joinpath("kubernetes-json-schema")
    return (folder for folder in root.iterdir() if folder.name.endswith("-local"))


def _minor(folder: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))


def _definitions(folder: Any) -> Definitions:
    definitions: Definitions = json.loads(folder.joinpath("_definitions.json").read_bytes())["$defs"]
    return definitions


def _kinds(definitions: Definitions) -> dict[Kind, str]:
    """Return the definitions of the kinds of resources: those that have an ObjectMeta."""
    return {
        (named["group"], named["version"], named["kind"]): _short(name)
        for name, schema in definitions.items()
        for named in schema.get("x-kubernetes-group-version-kind", ())
        if _short(_target(schema.get("properties", {}).get("metadata", {}))) == OBJECT_META
    }


def _older() -> Iterator[Kind]:
    for api_version, kinds in OLDER.items():
        group, _, version = api_version.partition("/")
        yield from ((group, version, kind) for kind in kinds.split())


def _current(kind: Kind, kinds: Mapping[Kind, str]) -> str:
    """Return the definition of the most stable version of a kind today, or "" for a removed kind."""
    group = MOVED.get((kind[0], kind[2]), kind[0])
    versions = [known for known in kinds if (known[0], known[2]) == (group, kind[2])]
    return kinds[max(versions, key=lambda known: _stability(known[1]))] if versions else ""


def _stability(version: str) -> tuple[bool, int, str, int]:
    match = _STABILITY.fullmatch(version)
    assert match, version
    return not match[2], int(match[1]), match[2] or "", int(match[3] or 0)


def _mergeable(definitions: Definitions) -> dict[str, dict[str, Any]]:
    """Return per definition the fields that are, or lead to, lists that are merged by element."""
    mapping: dict[str, dict[str, Any]] = {}
    before = -1
    while before != (before := sum(map(len, mapping.values()))):
        for name, schema in definitions.items():
            fields = {
                field: shape
                for field, property_ in schema.get("properties", {}).items()
                if (shape := _shape(property_, definitions, mapping))
            }
            mapping |= {_short(name): fields} if fields else {}
    return mapping


def _shape(schema: Mapping[str, Any], definitions: Definitions, mapping: Mapping[str, Any]) -> Any:
    """Return the name of the definition of a mapping, the data of an associative list, or None for other fields."""
    name = _short(_target(schema))
    if name:
        return name if name in mapping else None
    # "merge,retainKeys" is a merge, too
    if "merge" not in schema.get("x-kubernetes-patch-strategy", "").split(","):
        return None
    merge_key = schema.get("x-kubernetes-patch-merge-key")
    is_set = schema.get("x-kubernetes-list-type") == "set"
    keys = schema.get("x-kubernetes-list-map-keys") or ([merge_key] if merge_key and not is_set else [])
    items = definitions.get(_target(schema["items"]), {})
    defaults = {key: value for key in keys if (value := _default(key, items))}
    element = _short(_target(schema["items"]))
    return (
        {"keys": keys}
        | ({"defaults": defaults} if defaults else {})
        | ({"items": element} if element in mapping else {})
    )


def _default(key: str, items: Mapping[str, Any]) -> str | None:
    """Return the default of a key field from its description, because these schemas omit `default`."""
    schema = items.get("properties", {}).get(key, {})
    match = _DEFAULT.search(schema.get("description", ""))
    value: str | None = schema.get("default") or (match[1] if match else None)
    return None if key in items.get("required", ()) else value


def _reachable(fields: Mapping[str, dict[str, Any]], roots: set[str]) -> dict[str, dict[str, Any]]:
    reached: set[str] = set()
    waiting = roots & set(fields)
    while waiting:
        reached |= waiting
        shapes = [shape for name in waiting for shape in fields[name].values()]
        names = {shape if isinstance(shape, str) else shape.get("items", "") for shape in shapes}
        waiting = (names & set(fields)) - reached
    return {name: fields[name] for name in reached}


def _by_api_version(named: Mapping[Kind, str]) -> dict[str, dict[str, str]]:
    kinds: dict[str, dict[str, str]] = {}
    for (group, version, kind), name in named.items():
        kinds.setdefault(f"{group}/{version}" if group else version, {})[kind] = name
    return kinds


def _target(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


if __name__ == "__main__":
    TARGET.write_text(text(make()))
    FIELD_NAMES.write_text(text(make_field_names()))
