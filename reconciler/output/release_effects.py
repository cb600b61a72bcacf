"""The effects of changed HelmReleases on the resources that Flux creates, as data and as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic import Field, computed_field

from reconciler.output.changes.package_changes import PackageChanges
from reconciler.output.envelope import OutputModel
from reconciler.output.text import to_one_line

_SUMMARY_LINES = 50


class ReleaseEffect(OutputModel):
    """The effect of a changed HelmRelease on the resources that Flux creates from the chart."""

    release: str = Field(description="The namespace and name of the release.")
    changes: PackageChanges = Field(description="The changed resources. Values of Secrets are masked and not compared.")
    unknown_reason: str = Field(
        default="", description="The reason why the effect is unknown. Empty if the effect is known."
    )
    excludes_secret_values: bool = Field(
        default=False, description="Whether the release has values from Secrets, which no render reads."
    )

    @computed_field(description="The changed resources, one per line.")  # type: ignore[prop-decorator]
    @property
    def summary(self) -> tuple[str, ...]:
        """The changed resources, one per line."""
        return self.changes.format_summary_lines(_SUMMARY_LINES)


def format_release_effects(effects: Iterable[ReleaseEffect], max_lines: int) -> Iterator[str]:
    """Yield at most `max_lines` changed resources of each release, one per line.

    The values of Secrets are not included.
    """
    for effect in effects:
        title = f"effect of the release {to_one_line(effect.release)}"
        if effect.unknown_reason:
            yield f"{title} is unknown: {to_one_line(effect.unknown_reason)}"
            continue
        lines = effect.changes.format_summary_lines(max_lines) or ("no resource changes",)
        yield from (f"{title}: {line}" for line in lines)
        if effect.excludes_secret_values:
            yield f"{title}: values from Secrets are not included"
