"""Explaining a package as it stands at a commit of its branch: made again as it was, by the config of then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.daemon.explain import destination_of
from reconciler.daemon.past import Opened, Past, Then, Told, Unmade, files_of
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.daemon.verify import Names
from reconciler.gitio.errors import RepositoryMissingError
from reconciler.packages.update import MergeOptions
from reconciler.planning.destination import Destination
from reconciler.planning.outcome import Rendered
from reconciler.planning.remake import Remade
from reconciler.planning.stages import FilesStage
from reconciler.planning.without import (
    ConfigField,
    Edit,
    Layer,
    brought,
    config_without,
    edit_undone,
    renderer_without,
)
from reconciler.reporting.explain import alike_first
from reconciler.reporting.explanation import Explained


@dataclass(frozen=True)
class PastExplainer:
    """Explains one package as it stands at a commit."""

    told: Told
    then: Then | Unmade
    past: Past
    opened: Opened

    def explained(self) -> Explained:
        """Return what is known of the package. Raises InterruptedFunctionError."""
        return self._explained(self.then)

    def without(self, layer: Layer) -> Explained:
        """Return what would have been known of it, if one layer had not been there. Raises as `explained`."""
        assert not isinstance(self.then, Unmade), "there are layers of what was made only"
        if not isinstance(layer, ConfigField):
            is_since = isinstance(layer, Edit) and layer.made == "since"
            renderer = self.then.renderer if is_since else renderer_without(self.then.renderer, layer)
            return self._explained(replace(self.then, renderer=renderer), layer)
        snapshot, one = self.then.snapshot, self.then.catalog.objects[layer.key]
        changed = replace(snapshot, files=config_without(snapshot.files, one, layer.path))
        return self._explained(self.past.by(changed, self.opened, [self.told]), layer)

    def _explained(self, then: Then | Unmade, without: Layer | None = None) -> Explained:
        place, recorded = str(self.told.place), self.told.recorded
        made = self.past.remake(self.told, then, self.opened) if isinstance(then, Then) else then
        if isinstance(made, Unmade):
            return Explained(place, recorded.config, {}, trouble=f"it cannot be made again: {made.why}")
        folder = self.told.destination.path(self.told.package)
        known = Explained(
            place, recorded.config, made.objects, made.variant.owner, made.variant, at=self.told.commit, folder=folder
        )
        if not made.is_usable:
            return replace(known, trouble="; ".join(one.message for one in made.rendered.findings))
        is_as_it_was = made.rendered.files.id == recorded.rendered
        return replace(
            known,
            rendered=self._edited(made, without) if without or is_as_it_was else made.rendered,
            is_sure=is_as_it_was,
        )

    def _edited(self, made: Remade, without: Layer | None) -> Rendered:
        """Return the render with what people have made of it on the branch since, but for one layer of that."""
        told, rendered = self.told, made.rendered
        files = files_of(told.remote, told.tree) if told.is_edited and told.tree else None
        if files is None:
            return rendered
        if isinstance(without, Edit) and without.made == "since":
            files = edit_undone(files, rendered.files, without)
        elif without:
            before = files_of(told.remote, told.recorded.rendered)
            files = brought(before, rendered.files, files, MergeOptions()) if before else rendered.files
        return replace(rendered, files=files, stages=(*rendered.stages, FilesStage("since", files)))


def past_explainer(place: Place, at: str, past: Past, names: Names) -> PastExplainer:
    """Return who explains a package at a commit of its repository, by any name of that.

    Raises UnknownPlaceError where there is no such package, GitError without the commit.
    """

    def wants(known: Iterable[Destination]) -> list[Destination]:
        return [destination_of(place, known)]

    opened = past.open(wants)
    (destination,) = opened.destinations
    remote = past.remote(destination)
    if remote is None:
        raise RepositoryMissingError(past.trouble(destination))
    commit = names(remote.mirror, at)
    told = past.told(destination, remote, place.package, commit)
    if isinstance(told, str):
        raise UnknownPlaceError(f"{place}: its status file at {at} cannot be used: {told}")
    if told is None:
        listed = alike_first(place.package, past.packages(destination, remote, commit))
        raise UnknownPlaceError(f"{place}: there is no such package of ours at {at}; there are {listed}")
    told = replace(told, branch=at)
    return PastExplainer(told, past.then(told.recorded.config, opened, [told]), past, opened)
