"""Metric types: counters, gauges and histograms with labels, and the registry that exports them.

Before the export starts, recording a value does nothing and imports nothing. `prometheus_client` is imported when the
export starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.registry import Collector

OTHER = "other"


class LabelValues:
    """Label values that are not known in advance, for example host names. At most `limit` different values exist.

    Each further value is replaced by `other`, because the number of series must stay small.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = RLock()
        self._values: dict[str, None] = {}
        self._on_new_value: list[Callable[[str], None]] = []

    def limit(self, value: str) -> str:
        """Return the value of the label: `value`, or `other` if the limit is reached."""
        if value in self._values:
            return value
        with self._lock:
            value = value if len(self._values) < self._limit else OTHER
            if value not in self._values:
                self._values[value] = None
                for notify in self._on_new_value:
                    notify(value)
        return value

    def clear(self) -> None:
        """Delete all values."""
        with self._lock:
            self._values.clear()

    def __iter__(self) -> Iterator[str]:
        return iter((*self._values,))

    def on_new_value(self, notify: Callable[[str], None]) -> None:
        """Call `notify` with each new value."""
        self._on_new_value.append(notify)


Label = Sequence[str] | LabelValues


class Instrument:
    """A metric with its labels. A label has a fixed list of values, or values that occur later (`LabelValues`).

    Methods receive the values of the labels in the order of the labels. A series for each combination of fixed values
    exists from the start, so that functions such as `rate` have a first sample. A series for any other value is created
    when this value first occurs. A series of a sparse metric is created only when the metric first has a value for it,
    because most combinations never occur.
    """

    prometheus_type: ClassVar[str]

    def __init__(
        self, name: str, description: str, labels: Mapping[str, Label], *, is_sparse: bool = False, **options: Any
    ) -> None:
        self._is_sparse = is_sparse
        self.name = name
        self.description = description
        self.labels = labels
        self._options = options
        self._metric: Any = None
        self._children: dict[tuple[str, ...], Any] = {}
        for label in labels.values():
            if isinstance(label, LabelValues):
                label.on_new_value(lambda _: self._create_series())

    def start(self, registry: CollectorRegistry) -> None:
        """Create the metric in a registry, with the series of all known label values."""
        import prometheus_client

        factory = getattr(prometheus_client, self.prometheus_type)
        self._metric = factory(self.name, self.description, [*self.labels], registry=registry, **self._options)
        self._create_series()

    def stop(self) -> None:
        """Delete all values. Values that are recorded before the next start are ignored."""
        self._metric = None
        self._children = {}
        for label in self.labels.values():
            if isinstance(label, LabelValues):
                label.clear()

    def clear(self) -> None:
        """Delete all series whose label values were not known in advance."""
        if self._metric is not None and any(isinstance(label, LabelValues) for label in self.labels.values()):
            self._metric.clear()
            self._children = {}
            self._create_series()

    def _create_series(self) -> None:
        if self._metric is not None and not self._is_sparse:
            for values in product(*self.labels.values()):
                self._get_child(values)

    def _get_child(self, values: tuple[str, ...]) -> Any:
        child = self._children.get(values)
        if child is None:
            limited = tuple(
                label.limit(value) if isinstance(label, LabelValues) else value
                for label, value in zip(self.labels.values(), values, strict=True)
            )
            child = self._children.get(limited)
            if child is None:
                child = self._metric.labels(*limited) if limited else self._metric
                self._initialize(child)
                self._children[limited] = child
        return child

    def _initialize(self, child: Any) -> None:
        """Set the first value of a new series. The first value of most series is 0."""


class Counter(Instrument):
    """A number that only increases. The name must end with `_total`."""

    prometheus_type = "Counter"

    def add(self, *values: str, amount: float = 1) -> None:
        """Add `amount` to the series with these label values."""
        if self._metric is not None:
            self._get_child(values).inc(amount)


class Gauge(Instrument):
    """A number that can increase and decrease."""

    prometheus_type = "Gauge"

    def set(self, number: float, *values: str) -> None:
        """Set the number of the series with these label values."""
        if self._metric is not None:
            self._get_child(values).set(number)

    def add(self, amount: float, *values: str) -> None:
        """Add a positive or negative amount to the series with these label values."""
        if self._metric is not None:
            self._get_child(values).inc(amount)


class TimestampGauge(Gauge):
    """The time of an event, in seconds since 1970. The first value is the time at which the export started.

    With the first value 0, an alert about the age of an event would fire after each start of the process.
    """

    def __init__(self, name: str, description: str, labels: Mapping[str, Label], clock: Callable[[], float]) -> None:
        super().__init__(name, description, labels)
        self._clock = clock
        self._started_at = 0.0

    def start(self, registry: CollectorRegistry) -> None:
        """Create the metric. All its series have the current time as their first value."""
        self._started_at = self._clock()
        super().start(registry)

    def _initialize(self, child: Any) -> None:
        child.set(self._started_at)


class Histogram(Instrument):
    """The distribution of durations, in seconds."""

    prometheus_type = "Histogram"

    def observe(self, seconds: float, *values: str, exemplar: Mapping[str, str] | None = None) -> None:
        """Add a duration to the series with these label values. `exemplar` links the duration to a trace."""
        if self._metric is not None:
            self._get_child(values).observe(seconds, exemplar)


_InstrumentType = TypeVar("_InstrumentType", bound=Instrument)


class MetricRegistry:
    """All metrics of the process. They are exported only inside of `export`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._registry: CollectorRegistry | None = None
        self.instruments: list[Instrument] = []

    def counter(self, name: str, description: str, *, is_sparse: bool = False, **labels: Label) -> Counter:
        """Declare a counter."""
        return self._declare(Counter(name, description, labels, is_sparse=is_sparse))

    def gauge(self, name: str, description: str, *, is_sparse: bool = False, **labels: Label) -> Gauge:
        """Declare a gauge."""
        return self._declare(Gauge(name, description, labels, is_sparse=is_sparse))

    def timestamp(self, name: str, description: str, **labels: Label) -> Gauge:
        """Declare a gauge for the time of an event."""
        return self._declare(TimestampGauge(name, description, labels, self._clock))

    def histogram(self, name: str, description: str, buckets: Sequence[float], **labels: Label) -> Histogram:
        """Declare a histogram. `buckets` contains the upper limits of the buckets, in seconds."""
        return self._declare(Histogram(name, description, labels, buckets=buckets))

    def _declare(self, instrument: _InstrumentType) -> _InstrumentType:
        self.instruments.append(instrument)
        return instrument

    @contextmanager
    def export(self, *collectors: Collector) -> Iterator[None]:
        """Record and export metrics until the end of the `with` block.

        Args:
            collectors: Objects that compute further metrics for each request.
        """
        import prometheus_client

        # Do not export the time at which a series was created, because it doubles the number of lines and is not used.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = prometheus_client.CollectorRegistry()
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.GCCollector(registry=self._registry)
        for collector in collectors:
            self._registry.register(collector)
        for instrument in self.instruments:
            instrument.start(self._registry)
        try:
            yield
        finally:
            self._registry = None
            for instrument in self.instruments:
                instrument.stop()

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return the current values and their content type. See `render_metrics`."""
        from prometheus_client.exposition import choose_encoder

        assert self._registry is not None, "metrics are rendered only while they are exported"
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def clear_limited_series(self, label_values: LabelValues) -> None:
        """Delete all values of a label, and all series with this label."""
        label_values.clear()
        for instrument in self.instruments:
            if label_values in instrument.labels.values():
                instrument.clear()
