"""Runs functions that are container images, with a container engine. The settings must list the allowed images."""

from __future__ import annotations

import hashlib
import shutil
import uuid
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import re2

from reconciler.api.kpt import FunctionSpec
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    InterruptedFunctionError,
    Item,
)
from reconciler.packages.functions.registry import FunctionMatch, FunctionUnavailable
from reconciler.packages.functions.resource_list import clean_log, format_request
from reconciler.processes.process import ProcessLimits, ProcessResult, ProcessSpec
from reconciler.runners.commands import KILL_SIGNALS, read_function_output, run_limited
from reconciler.runners.interrupted_calls import InterruptedCalls

EngineName = Literal["podman", "docker", "nerdctl"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
ENGINES: tuple[EngineName, ...] = ("podman", "docker", "nerdctl")
# The exit code with which a container engine reports that the engine itself failed.
_ENGINE_FAILED_CODE = 125
_MAX_PROCESSES = 256
_MAX_OUTPUT_BYTES = 1_048_576
_REMOVAL_SECONDS = 30.0


@dataclass(frozen=True)
class EngineOptions:
    """The container engine and its pull policy for images. The name "" selects the first engine on the PATH."""

    name: EngineName | Literal[""]
    pull: PullPolicy


class ContainerEngine:
    """Runs images with the command line of podman, docker or nerdctl.

    Every method raises InterruptedFunctionError, because an error of the engine is not an error of the function.
    """

    def __init__(self, options: EngineOptions, limits: ProcessLimits) -> None:
        self._options = options
        self._limits = limits
        self._ids: dict[str, str] = {}

    def refresh(self) -> None:
        """Delete the cached image IDs, so that each ID is determined again when it is needed."""
        self._ids.clear()

    def image_id(self, reference: str) -> str:
        """Return the ID of an image. Pull the image first if the pull policy requires it."""
        if reference not in self._ids:
            self._ids[reference] = self._find_image(reference)
        return self._ids[reference]

    def run(self, reference: str, stdin: bytes) -> ProcessResult:
        """Run an image in a new container, and remove the container afterwards."""
        image, name = self.image_id(reference), f"reconciler-{uuid.uuid4().hex}"
        result = None
        try:
            command = self._build_command(
                "run", *_build_sandbox_flags(self._limits), *self._build_engine_flags(), "--name", name, image
            )
            result = run_limited(reference, ProcessSpec(command), stdin, self._limits)
        finally:
            # Remove the container, because it can still run although the command line process of the engine has ended.
            if result is None or result.is_too_large:
                self._remove(name)
        stderr = clean_log(result.stderr)
        if result.exit_code == _ENGINE_FAILED_CODE:
            raise InterruptedFunctionError(f"{command[0]} could not run {reference}: {stderr or 'no reason given'}")
        return ProcessResult(result.exit_code, result.output, stderr, result.is_too_large)

    def _find_image(self, reference: str) -> str:
        image_id = None if self._options.pull == "Always" else self._find_image_id(reference)
        if image_id is None and self._options.pull != "Never":
            self._run_checked("pull", "--quiet", reference)
            image_id = self._find_image_id(reference)
        if image_id is None:
            raise InterruptedFunctionError(
                f"{reference} is not on this machine, and the setting `functions.pull` is Never: pull the image"
            )
        return image_id

    def _find_image_id(self, reference: str) -> str | None:
        result = self._run_engine("image", "inspect", "--format", "{{.Id}}", reference)
        return result.output.decode(errors="replace").strip() or None if result.exit_code == 0 else None

    def _run_checked(self, *arguments: str) -> None:
        result = self._run_engine(*arguments)
        if result.exit_code:
            reason = clean_log(result.stderr) or "no reason given"
            raise InterruptedFunctionError(f"{self._find_program()} {' '.join(arguments)} failed: {reason}")

    def _run_engine(self, *arguments: str) -> ProcessResult:
        command = self._build_command(*arguments)
        limits = ProcessLimits(self._limits.seconds, 0, _MAX_OUTPUT_BYTES)
        return run_limited(" ".join(command), ProcessSpec(command), b"", limits)

    def _build_command(self, *arguments: str) -> tuple[str, ...]:
        return (self._find_program(), *arguments)

    def _find_program(self) -> str:
        candidates = (self._options.name,) if self._options.name else ENGINES
        program = next((name for name in candidates if shutil.which(name)), None)
        if program is None:
            raise InterruptedFunctionError(
                f"the setting `functions.containers` requires {' or '.join(candidates)} on the PATH"
            )
        return program

    def _build_engine_flags(self) -> tuple[str, ...]:
        # Turn off `--http-proxy`, because podman would pass its proxy settings with credentials to the container.
        return ("--http-proxy=false",) if self._find_program() == "podman" else ()

    def _remove(self, name: str) -> None:
        limits = ProcessLimits(_REMOVAL_SECONDS, 0, _MAX_OUTPUT_BYTES)
        try:
            run_limited(
                "the removal of a container", ProcessSpec(self._build_command("rm", "--force", name)), b"", limits
            )
        except InterruptedFunctionError as error:
            raise InterruptedFunctionError(f"a container could not be removed: {error}") from error


def _build_sandbox_flags(limits: ProcessLimits) -> tuple[str, ...]:
    memory = f"{limits.memory_bytes}b"
    return (
        "--rm", "-i", "--pull", "never",
        "--network", "none",
        "--user", "nobody",
        "--security-opt", "no-new-privileges",
        "--cap-drop", "ALL",
        "--read-only", "--tmpfs", "/tmp",  # a folder in the container  # noqa: S108  # nosec B108
        "--memory", memory, "--memory-swap", memory,
        "--pids-limit", str(_MAX_PROCESSES),
    )  # fmt: skip


_TAG = re2.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SIGNAL_CODE_OFFSET = 128


class ContainerFunctions:
    """Finds functions that are images, if the full reference of the image matches a pattern in the settings.

    The characters `*` and `?` in a pattern match any characters.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        prefix: str,
        engine: ContainerEngine,
        limits: ProcessLimits,
        interrupted_calls: InterruptedCalls,
    ) -> None:
        self._patterns = tuple(patterns)
        self._prefix = prefix
        self._engine = engine
        self._limits = limits
        self._interrupted_calls = interrupted_calls

    def find(self, spec: FunctionSpec) -> FunctionMatch | FunctionUnavailable:
        """Return the function for an image, or the reason if the image is not allowed.

        Raises:
            InterruptedFunctionError: The container runtime cannot run, or its process was interrupted.
        """
        reference = resolve_image_reference(spec, self._prefix)
        if reference is None:
            return FunctionUnavailable(
                f'the tag "{spec.tag}" is a version range, which is not supported; set an exact tag'
            )
        if not self.is_allowed(spec):
            return FunctionUnavailable(
                f"the image {reference} is not allowed; add it to the setting `functions.containers`"
            )
        container = _Container(reference, self._engine, self._limits, self._interrupted_calls)
        identity = f"{container.image_id()} {self._limits.memory_bytes} {self._limits.output_bytes}"
        return FunctionMatch(container, (0, 0, 0), identity=identity)

    def is_allowed(self, spec: FunctionSpec) -> bool:
        """Return whether the settings allow the image."""
        reference = resolve_image_reference(spec, self._prefix)
        return reference is not None and any(fnmatchcase(reference, pattern) for pattern in self._patterns)

    def refresh(self) -> None:
        """Delete the cached image IDs, so that each ID is determined again when it is needed."""
        self._engine.refresh()


def resolve_image_reference(spec: FunctionSpec, prefix: str) -> str | None:
    """Return the full reference of an image, such as "registry/name:tag". Return None for a version range.

    The field `tag` replaces the tag in the field `image`. Version ranges are not supported, because the version that an
    image registry selects for a range can change without a commit.
    """
    image = spec.image if "/" in spec.image or not prefix else f"{prefix}/{spec.image}"
    name, separator, _ = image.partition("@")
    parent, slash, last = name.rpartition("/")
    base, colon, _ = last.partition(":")
    if spec.tag:
        return f"{parent}{slash}{base}:{spec.tag}" if _TAG.fullmatch(spec.tag) else None
    return image if colon or separator else f"{image}:latest"


@dataclass(frozen=True)
class _Container:
    """A function that runs one image."""

    reference: str
    engine: ContainerEngine
    limits: ProcessLimits
    interrupted_calls: InterruptedCalls

    def image_id(self) -> str:
        """Return the current ID of the image."""
        return self.interrupted_calls.call(self.reference, lambda: self.engine.image_id(self.reference))

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Run the image. Can raise InterruptedFunctionError."""
        stdin = format_request(items, config).encode()
        key = f"{self.reference} {hashlib.sha256(stdin).hexdigest()}"
        return self.interrupted_calls.call(
            key, lambda: read_function_output(self.reference, items, self._run(stdin), self.limits)
        )

    def _run(self, stdin: bytes) -> ProcessResult:
        result = self.engine.run(self.reference, stdin)
        if result.exit_code - _SIGNAL_CODE_OFFSET in KILL_SIGNALS and not result.is_too_large:
            # Include the memory limit in the message, because it is a possible cause that the exit code does not show.
            raise InterruptedFunctionError(
                f"{self.reference} was killed (exit code {result.exit_code}); its memory limit is"
                f" {self.limits.memory_bytes} bytes"
            )
        return result
