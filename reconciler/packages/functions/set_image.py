"""The function `set-image`: set the name, tag or digest of a container image.

The original function skips init containers, Jobs and CronJobs, and writes no colon between a new name and the old tag.
The profile `safe` fixes these defects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import re2

from reconciler.api.functions import SetImage
from reconciler.api.profile import Profile
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.field_specs import FieldSpec, convert_field_specs, create_field_specs
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    FunctionResult,
    Item,
    charge_values,
    create_failure,
    get_value_at,
    read_config_object,
    read_config_strings,
    report_errors_as_failure,
)

_KEYS = ("name", "newName", "newTag", "digest")
_TEMPLATED = ((None, "Deployment"), (None, "StatefulSet"), (None, "ReplicaSet"), (None, "DaemonSet"))
_COMPAT = (
    *create_field_specs(((None, "Pod"),), "spec/containers[]/image", create=False),
    *create_field_specs((*_TEMPLATED, (None, "PodTemplate")), "spec/template/spec/containers[]/image", create=False),
)
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_POD_SPECS: tuple[tuple[str, tuple[tuple[str | None, str], ...]], ...] = (
    ("spec", ((None, "Pod"),)),
    ("template/spec", ((None, "PodTemplate"),)),
    ("spec/template/spec", (*_TEMPLATED, ("batch", "Job"), ("", "ReplicationController"))),
    ("spec/jobTemplate/spec/template/spec", (("batch", "CronJob"),)),
)
_SAFE = tuple(
    spec
    for pod, kinds in _POD_SPECS
    for spec in create_field_specs(kinds, *(f"{pod}/{name}[]/image" for name in _CONTAINERS), create=False)
)
_REFERENCE = re2.compile(r"(?P<name>[^@]*?)(?::(?P<tag>[A-Za-z0-9_.{}-]*))?(?:@(?P<digest>sha256:[A-Za-z0-9_.{}-]*))?")


@dataclass(frozen=True)
class _ImageConfig:
    name: str
    new_name: str
    new_tag: str
    digest: str
    fields: tuple[FieldSpec, ...] = ()


@report_errors_as_failure
def set_image(items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext) -> FunctionOutput:
    """Set the image in all containers that use it. The result contains the number of changes."""
    settings = _read_image_config(config)
    if isinstance(settings, str):
        return create_failure(items, settings)
    context.budget.charge_steps(len(items) * (1 + len(settings.fields)))
    changes = {item: list(_find_changes(item, settings, context.profile)) for item in items}
    changed_items = tuple(item.with_values(charge_values(changes[item], item, context.budget)) for item in items)
    return FunctionOutput(
        changed_items, (FunctionResult(f"summary: updated a total of {sum(map(len, changes.values()))} image(s)"),)
    )


def _read_image_config(config: FunctionConfig | None) -> _ImageConfig | str:
    """Return the configuration of the function, or an error message."""
    config = config or {}
    kind, api_version = config.get("kind"), str(config.get("apiVersion"))
    if (api_version, kind) == ("v1", "ConfigMap"):
        settings = SetImage(image=read_config_strings(config.get("data"), "data", strict=True))
    elif (api_version.partition("/")[0], kind) == ("fn.kpt.dev", "SetImage"):
        settings = read_config_object(SetImage, config)
    else:
        return f'the configuration must be a ConfigMap or a SetImage of fn.kpt.dev, but is "{kind or ""}"'
    image = settings.image
    unknown = next((key for key in image if key not in _KEYS), "")
    if unknown:
        return f"ConfigMap has wrong field name {unknown}"
    if not image.get("name"):
        return "must specify `name`"
    if not any(image.get(key) for key in _KEYS[1:]):
        return "must specify one of `newName`, `newTag`, or `digest`"
    name, new_name, new_tag, digest = (image.get(key, "") for key in _KEYS)
    return _ImageConfig(name, new_name, new_tag, digest, convert_field_specs(settings.additional_image_fields))


def _find_changes(item: Item, settings: _ImageConfig, profile: Profile) -> Iterator[tuple[DataPath, str]]:
    specs = _SAFE if profile == "safe" else _COMPAT
    standard_paths = dict.fromkeys(path for spec in specs for path in spec.find_paths(item))
    additional_paths = dict.fromkeys(path for spec in settings.fields for path in spec.find_paths(item))
    yield from _change_fields(item.data, standard_paths, settings, joins_colon=profile == "safe")
    yield from _change_fields(
        item.data, [path for path in additional_paths if path not in standard_paths], settings, joins_colon=True
    )


def _change_fields(
    data: Any, paths: Iterable[DataPath], settings: _ImageConfig, *, joins_colon: bool
) -> Iterator[tuple[DataPath, str]]:
    for path in paths:
        old_image = get_value_at(data, path)
        match = _REFERENCE.fullmatch(old_image) if isinstance(old_image, str) else None
        if match and match["name"] == settings.name:
            new_image = _format_image(settings, match.groupdict(), joins_colon=joins_colon)
            yield from [(path, new_image)] if new_image != old_image else []


def _format_image(settings: _ImageConfig, old_parts: Mapping[str, str | None], *, joins_colon: bool) -> str:
    name = settings.new_name or settings.name
    if settings.digest:
        return f"{name}@{settings.digest}"
    if settings.new_tag:
        return f"{name}:{settings.new_tag}"
    tag, digest = old_parts["tag"] or "", old_parts["digest"] or ""
    if not joins_colon:
        return name + (tag or digest)
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
