"""All metrics of the daemon. The page `docs/reference/metrics.md` describes them.

Names, labels and label values are part of the API. Labels never contain a package, an object, a commit or a URL.
"""

from __future__ import annotations

import time

from reconciler import __version__
from reconciler.telemetry.instruments import LabelValues, MetricRegistry
from reconciler.telemetry.phases import PHASES

REGISTRY = MetricRegistry(time.time)

PASS_RESULTS = ("success", "partial", "failure")
PASS_TRIGGERS = ("start", "reload", "now", "retry", "webhook", "folder", "remote", "timer")
TARGET_STATES = ("ready", "blocked", "unreachable")
PACKAGE_STATES = (
    "published", "draft", "proposed", "blocked", "on_hold", "pending_deletion", "declined", "orphaned"
)  # fmt: skip
DRAFT_STATES = ("draft", "proposed")
SEVERITIES = ("error", "warning", "info")
NOTIFICATION_RESULTS = ("sent", "deduplicated", "limited", "failed")
DRAFT_ACTIONS = ("created", "updated", "withdrawn")
REVIEW_ACTIONS = ("propose", "approve", "reject", "revert")
REVIEW_RESULTS = ("done", "skipped", "failed")
REVIEW_CHANNELS = ("console", "api")
PUBLICATION_SOURCES = ("forge", "command", "console", "annotation", "git")
GIT_OPERATIONS = ("fetch", "push", "ls_remote")
GIT_RESULTS = ("ok", "auth", "not_found", "timeout", "refused", "stale", "other")
PUSH_RESULTS = ("pushed", "lost_race", "refused", "postponed", "failed")
CREDENTIAL_USES = ("tls", "api")
QUEUES = ("fetch", "push", "notification")
CONTROLLERS = ("package_variants", "plugin_presets", "components", "placement")
RENDER_RESULTS = ("rendered", "cached", "failed")
RUNTIMES = ("builtin", "starlark", "exec", "container")
FUNCTION_RESULTS = ("success", "failed", "interrupted")
FORGE_OPERATIONS = ("get", "post", "put", "patch", "delete")
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx", "error")
CACHES = ("mirrors", "other")
_PASS_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_GIT_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_RENDER_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 300)
_LATENCY_BUCKETS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
# This limit allows at most 3 * 161 series of the metric `reconciler_findings`, because there are three severities.
_MAX_FINDING_CODES = 160
_MAX_CHANNELS, _MAX_EVENTS = 20, 30
_MAX_REMOTES = 100
_MAX_FORGES, _MAX_RATE_LIMITS = 20, 10
_MAX_SOURCE_HOSTS = 50
_MAX_CREDENTIALS = 20

WEBHOOK_PROVIDERS = ("github", "gitlab", "gitea", "forgejo", "bitbucket", "other")
WEBHOOK_RESULTS = ("accepted", "replayed", "expired", "refused")
HTTP_METHODS = ("GET", "HEAD", "POST", "other")
HTTP_ROUTES = LabelValues(100)
_HTTP_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
_MAX_HTTP_CODES = 20

BUILD_INFO = REGISTRY.gauge(
    "reconciler_build_info",
    "The version of the program, its Git commit, and the version of Python. The value is always 1.",
    version=(__version__,),
    revision=LabelValues(1),
    python=LabelValues(1),
)
SHARD_INDEX = REGISTRY.gauge("reconciler_shard_index", "The number of the shard of this process, starting at 1.")
SHARD_COUNT = REGISTRY.gauge("reconciler_shards", "The number of shards.")

PASS_DURATION = REGISTRY.histogram(
    "reconciler_pass_duration_seconds", "The duration of passes.", _PASS_BUCKETS, result=PASS_RESULTS
)
PASSES = REGISTRY.counter(
    "reconciler_passes_total",
    "The number of completed passes. The trigger is the most specific reason of the pass.",
    result=PASS_RESULTS,
    trigger=PASS_TRIGGERS,
)
PASS_PHASE_DURATION = REGISTRY.histogram(
    "reconciler_pass_phase_duration_seconds", "The duration of each phase of a pass.", _PASS_BUCKETS, phase=PHASES
)
PASS_START = REGISTRY.gauge(
    "reconciler_pass_start_timestamp_seconds", "The start time of the running pass, or 0 if no pass is running."
)
LAST_PASS = REGISTRY.timestamp(
    "reconciler_last_pass_timestamp_seconds", "The end time of the last pass with this result.", result=PASS_RESULTS
)
DRAFT_LATENCY = REGISTRY.histogram(
    "reconciler_draft_latency_seconds",
    "The time from the first fetch of a config commit until its drafts are pushed.",
    _LATENCY_BUCKETS,
)
TARGETS = REGISTRY.gauge("reconciler_targets", "The number of targets of this shard.", state=TARGET_STATES)
PACKAGES = REGISTRY.gauge("reconciler_packages", "The number of packages of this shard.", state=PACKAGE_STATES)
OLDEST_DRAFT = REGISTRY.gauge(
    "reconciler_oldest_draft_timestamp_seconds",
    "The time at which the daemon first found the oldest open draft, or 0 if there is no draft.",
    state=DRAFT_STATES,
)
CONFLICTS = REGISTRY.gauge("reconciler_conflicts", "The number of open conflicts between local changes and updates.")
FINDING_CODES = LabelValues(_MAX_FINDING_CODES)
FINDINGS = REGISTRY.gauge(
    "reconciler_findings", "The number of findings of the last pass.", severity=SEVERITIES, code=FINDING_CODES
)
DRAFT_CHANGES = REGISTRY.counter(
    "reconciler_draft_changes_total", "The number of packages that passes drafted or withdrew.", action=DRAFT_ACTIONS
)
PUBLICATIONS = REGISTRY.counter(
    "reconciler_publications_total",
    "The number of published packages. `command` is `approve`, `console` is an approval in the console, `forge` is a "
    "pull request that `approve` merged, and `git` is any other push or merge.",
    source=PUBLICATION_SOURCES,
)
REVIEWS = REGISTRY.counter(
    "reconciler_review_actions_total",
    "The number of draft branches to which people applied an action in the console or with the API. `skipped`: the "
    "draft has moved, or is blocked.",
    action=REVIEW_ACTIONS, result=REVIEW_RESULTS, via=REVIEW_CHANNELS,
)  # fmt: skip
NOTIFICATIONS = REGISTRY.counter(
    "reconciler_notifications_total",
    "The number of notifications. `deduplicated`: a condition ended and began again within the gather time, so that no "
    "message is sent. `limited`: the rate limit combined several notifications into one message.",
    channel=LabelValues(_MAX_CHANNELS),
    event=LabelValues(_MAX_EVENTS),
    result=NOTIFICATION_RESULTS,
)

REMOTES = LabelValues(_MAX_REMOTES)
GIT_REQUEST_DURATION = REGISTRY.histogram(
    "reconciler_git_request_duration_seconds",
    "The duration of calls of git that contact a remote.",
    _GIT_BUCKETS,
    remote=REMOTES,
    operation=GIT_OPERATIONS,
)
GIT_REQUESTS = REGISTRY.counter(
    "reconciler_git_requests_total",
    "The number of calls of git that contact a remote.",
    remote=REMOTES,
    operation=GIT_OPERATIONS,
    result=GIT_RESULTS,
)
PUSH_REFS = REGISTRY.counter(
    "reconciler_push_refs_total", "The number of refs that pushes tried to move.", remote=REMOTES, result=PUSH_RESULTS
)
REMOTE_LAST_SUCCESS = REGISTRY.timestamp(
    "reconciler_remote_last_success_timestamp_seconds",
    "The end time of the last successful call of git.",
    remote=REMOTES,
    operation=GIT_OPERATIONS,
)
REMOTE_BACKOFF = REGISTRY.gauge(
    "reconciler_remote_backoff_seconds",
    "The time until the next fetch after failures, or 0. For a host, the longest time of its repositories.",
    remote=REMOTES,
)
QUEUE_LENGTH = REGISTRY.gauge(
    "reconciler_queue_length",
    "The number of remotes whose fetch or push has not started yet, or of notifications that are not sent yet.",
    queue=QUEUES,
)
CREDENTIAL_EXPIRY = REGISTRY.gauge(
    "reconciler_credential_expiry_timestamp_seconds",
    "The time at which a credential expires, or 0 if it is unknown. `tls` is the certificate of the HTTP server, and "
    "`api` is a token for the API of GitHub.",
    remote=LabelValues(_MAX_CREDENTIALS),
    use=CREDENTIAL_USES,
)
SETTINGS_RELOAD_SUCCESS = REGISTRY.gauge(
    "reconciler_settings_reload_success", "Whether the last read of the settings succeeded: 1 or 0."
)
SETTINGS_RELOAD_TIME = REGISTRY.timestamp(
    "reconciler_settings_reload_timestamp_seconds", "The time at which the current settings were read."
)
WEBHOOKS = REGISTRY.counter(
    "reconciler_webhooks_total",
    "The number of webhooks. `replayed` webhooks were received before, and `expired` webhooks have an old signature.",
    provider=WEBHOOK_PROVIDERS,
    result=WEBHOOK_RESULTS,
)
HTTP_REQUESTS = REGISTRY.counter(
    "reconciler_http_requests_total",
    "The number of requests to the HTTP server, except requests that the server refuses before it has read all"
    " headers.",
    is_sparse=True,
    method=HTTP_METHODS,
    route=HTTP_ROUTES,
    code=LabelValues(_MAX_HTTP_CODES),
)
HTTP_REQUEST_DURATION = REGISTRY.histogram(
    "reconciler_http_request_duration_seconds",
    "The duration of requests to the HTTP server, from the end of the headers to the end of the response.",
    _HTTP_BUCKETS,
    route=HTTP_ROUTES,
)

RENDERS = REGISTRY.counter(
    "reconciler_renders_total",
    "The number of packages that passes rendered, or did not render because no dependency had changed.",
    result=RENDER_RESULTS,
)
RENDER_DURATION = REGISTRY.histogram(
    "reconciler_render_duration_seconds", "The duration of the render of one package.", _RENDER_BUCKETS,
    controller=CONTROLLERS,
)  # fmt: skip
FUNCTION_DURATION = REGISTRY.histogram(
    "reconciler_function_duration_seconds", "The duration of calls of functions.", _RENDER_BUCKETS,
    runtime=RUNTIMES, result=FUNCTION_RESULTS,
)  # fmt: skip
WORKER_PROCESSES = REGISTRY.gauge("reconciler_worker_processes", "The number of processes that render packages.")

FORGE_HOSTS, RATE_LIMITS = LabelValues(_MAX_FORGES), LabelValues(_MAX_RATE_LIMITS)
FORGE_REQUESTS = REGISTRY.counter(
    "reconciler_forge_requests_total",
    "The number of requests to forges. `error` requests have no response.",
    host=FORGE_HOSTS,
    operation=FORGE_OPERATIONS,
    status_class=STATUS_CLASSES,
)
FORGE_RATE_LIMIT_REMAINING = REGISTRY.gauge(
    "reconciler_forge_rate_limit_remaining",
    "The number of requests that the forge allows until the next reset.",
    is_sparse=True,
    host=FORGE_HOSTS,
    resource=RATE_LIMITS,
)
FORGE_RATE_LIMIT_RESET = REGISTRY.gauge(
    "reconciler_forge_rate_limit_reset_timestamp_seconds",
    "The time of the next reset of the rate limit.",
    is_sparse=True,
    host=FORGE_HOSTS,
    resource=RATE_LIMITS,
)
SOURCE_HOSTS = LabelValues(_MAX_SOURCE_HOSTS)
SOURCE_REQUESTS = REGISTRY.counter(
    "reconciler_source_requests_total",
    "The number of requests to chart repositories and registries, and to the hosts of their redirects. `error` "
    "requests have no complete response.",
    host=SOURCE_HOSTS,
    status_class=STATUS_CLASSES,
)
CACHE_BYTES = REGISTRY.gauge(
    "reconciler_cache_bytes", "The size of the files in the cache folder, updated each hour.", cache=CACHES
)


def render_metrics(accept: str) -> tuple[bytes, str]:
    """Return the current values of all metrics, and their content type.

    Args:
        accept: The header `Accept` of the request. It selects OpenMetrics or the Prometheus text format.
    """
    return REGISTRY.render(accept)
