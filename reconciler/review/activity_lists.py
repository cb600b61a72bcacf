"""The activity that a person may read: the events of `ActivityLog`, and the publications in the console's index."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.activity import ActivityEvent, merge_activity
from reconciler.review.restricted_index import TargetNameSet, hide_names

if TYPE_CHECKING:
    from reconciler.output.fleet.model import FleetIndex
    from reconciler.review.permissions import Permissions

_MAX_CACHED = 8
Events = tuple[ActivityEvent, ...]


class ActivityLists:
    """Lists the activity of the fleet. Events after the pass from which the console index was built are omitted.

    People with equal permissions get the same cached list.

    Args:
        read_events: Returns the events of `ActivityLog`.
    """

    def __init__(self, read_events: Callable[[], Events]) -> None:
        self._read_events = read_events
        self._lock = Lock()
        # The lists, by the `id()` of the index and the permissions. Python can use the `id()` of a deleted index again.
        # The weak reference shows whether the `id()` still belongs to the same index.
        self._cached: OrderedDict[tuple[int, Permissions], tuple[ReferenceType[FleetIndex], Events]] = OrderedDict()

    def list_events(self, whole_index: FleetIndex, index: FleetIndex, permissions: Permissions) -> Events:
        """Return the activity, the newest event first. Omit events after the pass from which the index was built.

        Args:
            whole_index: The index of the whole fleet.
            index: The part of this index that the person may read.
        """
        key = (id(index), permissions)
        with self._lock:
            reference, found = self._cached.pop(key, (None, ()))
            if reference is None or reference() is not index:
                events = [event for event in self._read_events() if event.recorded_at <= whole_index.completed_at]
                readable = events if permissions.reads_everything else _select_readable(events, whole_index, index)
                found = merge_activity(readable, index.publications)
            self._cached[key] = ref(index), found
            if len(self._cached) > _MAX_CACHED:
                self._cached.popitem(last=False)
        return found


def _select_readable(
    events: Iterable[ActivityEvent], whole_index: FleetIndex, index: FleetIndex
) -> Iterator[ActivityEvent]:
    """Yield the events about packages of the restricted index, without names of other targets.

    The events about passes are omitted, because they count all targets.
    """
    all_events = tuple(events)
    names = {*whole_index.by_target, *(event.target for event in all_events if event.target)}
    hidden = TargetNameSet(name for name in names if name not in index.by_target)
    for event in all_events:
        if index.find_row(event.target, event.package):
            message, reason = hide_names(event.message, hidden), hide_names(event.reason, hidden)
            is_unchanged = (message, reason) == (event.message, event.reason)
            yield event if is_unchanged else replace(event, message=message, reason=reason)
