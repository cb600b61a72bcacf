"""The container engine: podman, docker or nerdctl, called by its command line."""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from typing import Literal

from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.packages.functions.words import clean_words
from reconciler.runners.commands import bounded
from reconciler.runners.process import Bounds, Ended, Start

EngineName = Literal["podman", "docker", "nerdctl"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
ENGINES: tuple[EngineName, ...] = ("podman", "docker", "nerdctl")
# the engine itself failed, not what it ran
_ENGINE_FAILED = 125
_MOST_PROCESSES = 256
_MOST_WORDS_BYTES = 1_048_576
_REMOVAL_SECONDS = 30.0


@dataclass(frozen=True)
class EngineOptions:
    """Which engine ("": the first on the PATH), and when images are pulled."""

    name: EngineName | Literal[""]
    pull: PullPolicy


class Engine:
    """Runs images. Every method raises InterruptedFunctionError: what an engine cannot do is the world's doing."""

    def __init__(self, options: EngineOptions, bounds: Bounds) -> None:
        self._options = options
        self._bounds = bounds
        self._ids: dict[str, str] = {}

    def look_again(self) -> None:
        """Forget which images the names stood for: they are asked again, once."""
        self._ids.clear()

    def image_id(self, reference: str) -> str:
        """Return the id of an image; it is pulled first where the policy says so."""
        if reference not in self._ids:
            self._ids[reference] = self._find_image(reference)
        return self._ids[reference]

    def run(self, reference: str, stdin: bytes) -> Ended:
        """Run what `image_id` found, in a container that is gone afterwards."""
        image, name = self.image_id(reference), f"reconciler-{uuid.uuid4().hex}"
        ended = None
        try:
            command = self._command("run", *_sandbox(self._bounds), *self._own_flags(), "--name", name, image)
            ended = bounded(reference, Start(command), stdin, self._bounds)
        finally:
            # the engine's command line is gone, its container may not be
            if ended is None or ended.too_large:
                self._remove(name)
        words = clean_words(ended.words)
        if ended.code == _ENGINE_FAILED:
            raise InterruptedFunctionError(f"{command[0]} could not run {reference}: {words or 'no reason given'}")
        return Ended(ended.code, ended.output, words, ended.too_large)

    def _find_image(self, reference: str) -> str:
        found = None if self._options.pull == "Always" else self._inspect(reference)
        if found is None and self._options.pull != "Never":
            self._tell("pull", "--quiet", reference)
            found = self._inspect(reference)
        if found is None:
            raise InterruptedFunctionError(f"{reference} must be on this machine, since functions.pull is Never")
        return found

    def _inspect(self, reference: str) -> str | None:
        ended = self._ask("image", "inspect", "--format", "{{.Id}}", reference)
        return ended.output.decode(errors="replace").strip() or None if ended.code == 0 else None

    def _tell(self, *arguments: str) -> None:
        ended = self._ask(*arguments)
        if ended.code:
            why = clean_words(ended.words) or "no reason given"
            raise InterruptedFunctionError(f"{self._program()} {' '.join(arguments)} failed: {why}")

    def _ask(self, *arguments: str) -> Ended:
        command = self._command(*arguments)
        bounds = Bounds(self._bounds.seconds, 0, _MOST_WORDS_BYTES)
        return bounded(" ".join(command), Start(command), b"", bounds)

    def _command(self, *arguments: str) -> tuple[str, ...]:
        return (self._program(), *arguments)

    def _program(self) -> str:
        wanted = (self._options.name,) if self._options.name else ENGINES
        found = next((name for name in wanted if shutil.which(name)), None)
        if found is None:
            raise InterruptedFunctionError(f"functions.containers needs {' or '.join(wanted)} on the PATH")
        return found

    def _own_flags(self) -> tuple[str, ...]:
        # podman would hand its own proxy settings, credentials included, to the container
        return ("--http-proxy=false",) if self._program() == "podman" else ()

    def _remove(self, name: str) -> None:
        bounds = Bounds(_REMOVAL_SECONDS, 0, _MOST_WORDS_BYTES)
        try:
            bounded("the removal of a container", Start(self._command("rm", "--force", name)), b"", bounds)
        except InterruptedFunctionError as error:
            raise InterruptedFunctionError(f"a container could not be ended: {error}") from error


def _sandbox(bounds: Bounds) -> tuple[str, ...]:
    memory = f"{bounds.memory_bytes}b"
    return (
        "--rm", "-i", "--pull", "never",
        "--network", "none",
        "--user", "nobody",
        "--security-opt", "no-new-privileges",
        "--cap-drop", "ALL",
        "--read-only", "--tmpfs", "/tmp",  # the folder of the container  # noqa: S108  # nosec B108
        "--memory", memory, "--memory-swap", memory,
        "--pids-limit", str(_MOST_PROCESSES),
    )  # fmt: skip
