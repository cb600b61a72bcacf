"""set-image: another name, tag or digest for a container image (kpt.md 16).

Upstream never reaches init containers, joins the old tag to a new name without its colon and knows neither Jobs nor
CronJobs; `safe` does (D30).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from reconciler.krm.yaml import Path
from reconciler.packages.functions.fieldspec import FieldSpec, read_field_specs, specs
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    charged,
    config_strings,
    failure,
    reports_faults,
    value_at,
)
from reconciler.packages.kptfile import Profile

_KEYS = ("name", "newName", "newTag", "digest")
_TEMPLATED = ((None, "Deployment"), (None, "StatefulSet"), (None, "ReplicaSet"), (None, "DaemonSet"))
_COMPAT = (
    *specs(((None, "Pod"),), "spec/containers[]/image", create=False),
    *specs((*_TEMPLATED, (None, "PodTemplate")), "spec/template/spec/containers[]/image", create=False),
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
    for spec in specs(kinds, *(f"{pod}/{name}[]/image" for name in _CONTAINERS), create=False)
)
_REFERENCE = re2.compile(r"(?P<name>[^@]*?)(?::(?P<tag>[A-Za-z0-9_.{}-]*))?(?:@(?P<digest>sha256:[A-Za-z0-9_.{}-]*))?")


@dataclass(frozen=True)
class _Wish:
    name: str
    new_name: str
    new_tag: str
    digest: str
    fields: tuple[FieldSpec, ...] = ()


@reports_faults
def set_image(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the image changed wherever a container has it; one result counts the changes."""
    wish = _read(config)
    if isinstance(wish, str):
        return failure(items, wish)
    context.budget.spend(len(items) * (1 + len(wish.fields)))
    changes = {item: list(_changes(item, wish, context.profile)) for item in items}
    changed = tuple(item.with_values(charged(changes[item], item, context.budget)) for item in items)
    return Output(changed, (Result(f"summary: updated a total of {sum(map(len, changes.values()))} image(s)"),))


def _read(config: Config | None) -> _Wish | str:
    """Return what the configuration asks for, or what is wrong with it."""
    config = config or {}
    kind, api_version = config.get("kind"), str(config.get("apiVersion"))
    if (api_version, kind) == ("v1", "ConfigMap"):
        image = config_strings(config.get("data"), "data", strict=True)
    elif (api_version.partition("/")[0], kind) == ("fn.kpt.dev", "SetImage"):
        image = config_strings(config.get("image"), "image", strict=True)
    else:
        return f'the configuration must be a ConfigMap or a SetImage of fn.kpt.dev, not "{kind or ""}"'
    unknown = next((key for key in image if key not in _KEYS), "")
    if unknown:
        return f"ConfigMap has wrong field name {unknown}"
    if not image.get("name"):
        return "must specify `name`"
    if not any(image.get(key) for key in _KEYS[1:]):
        return "must specify one of `newName`, `newTag`, or `digest`"
    name, new_name, new_tag, digest = (image.get(key, "") for key in _KEYS)
    return _Wish(name, new_name, new_tag, digest, read_field_specs(config.get("additionalImageFields")))


def _changes(item: Item, wish: _Wish, profile: Profile) -> Iterator[tuple[Path, str]]:
    known = _SAFE if profile == "safe" else _COMPAT
    own = dict.fromkeys(path for spec in known for path in spec.targets(item))
    added = dict.fromkeys(path for spec in wish.fields for path in spec.targets(item))
    yield from _changed(item.data, own, wish, joins_colon=profile == "safe")
    yield from _changed(item.data, [path for path in added if path not in own], wish, joins_colon=True)


def _changed(data: Any, paths: Iterable[Path], wish: _Wish, *, joins_colon: bool) -> Iterator[tuple[Path, str]]:
    for path in paths:
        old = value_at(data, path)
        match = _REFERENCE.fullmatch(old) if isinstance(old, str) else None
        if match and match["name"] == wish.name:
            new = _image(wish, match.groupdict(), joins_colon=joins_colon)
            yield from [(path, new)] if new != old else []


def _image(wish: _Wish, old: Mapping[str, str | None], *, joins_colon: bool) -> str:
    name = wish.new_name or wish.name
    if wish.digest:
        return f"{name}@{wish.digest}"
    if wish.new_tag:
        return f"{name}:{wish.new_tag}"
    tag, digest = old["tag"] or "", old["digest"] or ""
    if not joins_colon:
        return name + (tag or digest)
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")
