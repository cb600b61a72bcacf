"""Stages of a render: the package as each step left it, kept where somebody wants it explained (tenet 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reconciler.packages.functions.function import Item
from reconciler.packages.kptfile import FunctionSpec
from reconciler.rules.overrides.apply import Overridden
from reconciler.snapshot.files import FileTree

Layer = Literal[
    "source",
    "edit",
    "draft",
    "clone",
    "context",
    "pipeline",
    "injection",
    "function",
    "policy",
    "strip",
    "template",
    "room",
    "since",
]
"""Who sets values, in the order of their work: the source as it came, people's edits on the cluster branch and on the
draft, cloning, the package context, a variant's functions as they come into the Kptfile, injection, functions, override
policies, the taking off of what names policies and clusters, templates; `room` puts a generated package right; `since`
is what people have changed on the branch after that."""


@dataclass(frozen=True)
class FilesStage:
    """The whole package after one step."""

    layer: Layer
    files: FileTree


@dataclass(frozen=True)
class FunctionStage:
    """All resources as a mutator left them: that of this `number` in the Kptfile of a package, "" for the root."""

    package: str
    number: int
    spec: FunctionSpec
    items: tuple[Item, ...]


@dataclass(frozen=True)
class PolicyStage:
    """The resources that have override policies, with what each of their items made of them."""

    resources: tuple[Overridden, ...]


Stage = FilesStage | FunctionStage | PolicyStage
