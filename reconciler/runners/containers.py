"""Functions that are container images, for those that the operator listed (kpt.md 2 rule 4, 13)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import re2

from reconciler.packages.functions.exchange import request_text
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    InterruptedFunctionError,
    Item,
    Output,
)
from reconciler.packages.functions.registry import Found, Missing
from reconciler.packages.kptfile import FunctionSpec
from reconciler.runners.commands import KILLS, output_of
from reconciler.runners.engine import Engine
from reconciler.runners.process import Bounds, Ended
from reconciler.runners.spoiled import SpoiledCalls

_TAG = re2.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SHELL_SIGNALS = 128


class Containers:
    """The images that may run: those whose full reference a pattern matches, `*` and `?` as in file names."""

    def __init__(
        self, patterns: Sequence[str], prefix: str, engine: Engine, bounds: Bounds, spoiled: SpoiledCalls
    ) -> None:
        self._patterns = tuple(patterns)
        self._prefix = prefix
        self._engine = engine
        self._bounds = bounds
        self._spoiled = spoiled

    def find(self, spec: FunctionSpec) -> Found | Missing:
        """Return what runs for an image, or why it may not. Raises InterruptedFunctionError."""
        reference = full_reference(spec, self._prefix)
        if reference is None:
            return Missing(f'tag must be a tag of the image, not the constraint "{spec.tag}"')
        if not self.lists(spec):
            return Missing(f"functions.containers must list {reference}")
        container = _Container(reference, self._engine, self._bounds, self._spoiled)
        identity = f"{container.image_id()} {self._bounds.memory_bytes} {self._bounds.output_bytes}"
        return Found(container, (0, 0, 0), identity=identity)

    def lists(self, spec: FunctionSpec) -> bool:
        """Return whether the operator listed an image."""
        reference = full_reference(spec, self._prefix)
        return reference is not None and any(fnmatchcase(reference, pattern) for pattern in self._patterns)

    def look_again(self) -> None:
        """Forget what the images were."""
        self._engine.look_again()


def full_reference(spec: FunctionSpec, prefix: str) -> str | None:
    """Return an image's whole reference (kpt.md 2 rule 4): prefix, name, and tag or digest.

    The field `tag` overrules the image's own tag. None where it asks for a range: which tags there are would have to
    be asked of a registry, and its answer changes without anybody's commit.
    """
    image = spec.image if "/" in spec.image or not prefix else f"{prefix}/{spec.image}"
    name, at, _ = image.partition("@")
    folder, slash, last = name.rpartition("/")
    base, colon, _ = last.partition(":")
    if spec.tag:
        return f"{folder}{slash}{base}:{spec.tag}" if _TAG.fullmatch(spec.tag) else None
    return image if colon or at else f"{image}:latest"


@dataclass(frozen=True)
class _Container:
    """One image as a function."""

    reference: str
    engine: Engine
    bounds: Bounds
    spoiled: SpoiledCalls

    def image_id(self) -> str:
        """Return what the reference stands for today."""
        return self.spoiled.call(self.reference, lambda: self.engine.image_id(self.reference))

    def __call__(self, items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
        """Run the image. Raises InterruptedFunctionError."""
        stdin = request_text(items, config).encode()
        key = f"{self.reference} {hashlib.sha256(stdin).hexdigest()}"
        return self.spoiled.call(key, lambda: output_of(self.reference, items, self._run(stdin), self.bounds))

    def _run(self, stdin: bytes) -> Ended:
        ended = self.engine.run(self.reference, stdin)
        if ended.code - _SHELL_SIGNALS in KILLS and not ended.too_large:
            # whether that was the memory limit is not to be seen any more
            why = f"{self.reference} was killed (exit code {ended.code}); it may use {self.bounds.memory_bytes} bytes"
            raise InterruptedFunctionError(why)
        return ended
