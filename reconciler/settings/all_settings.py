"""All settings: those of the service, such as `poll_seconds`, and the groups. Each group has its own module."""

from __future__ import annotations

from pydantic import PrivateAttr, field_validator

from reconciler.krm.names import validate_ref_name
from reconciler.planning.model.shard import parse_shard
from reconciler.settings.console import ConsoleSettings
from reconciler.settings.declaration import SettingOrigins, declare
from reconciler.settings.drafts import ApprovalSettings, DraftSettings, GuardSettings, ReviewSettings
from reconciler.settings.forge import ForgeSettings
from reconciler.settings.functions import FunctionSettings
from reconciler.settings.git import GitSettings
from reconciler.settings.health import HealthSettings
from reconciler.settings.limits import LimitSettings
from reconciler.settings.logs import LogSettings
from reconciler.settings.merge import MergeSettings
from reconciler.settings.metrics import MetricsSettings
from reconciler.settings.notifications import NotificationSettings
from reconciler.settings.polling import PollingSettings
from reconciler.settings.rendering import RenderingSettings
from reconciler.settings.repositories import ConfigSettings, FleetSettings, StatusSettings
from reconciler.settings.rules import RuleSettings
from reconciler.settings.server import ServerSettings
from reconciler.settings.signing import SigningSettings
from reconciler.settings.sources import SourceSettings
from reconciler.settings.tenancy import TenancySettings
from reconciler.settings.tracing import TracingSettings
from reconciler.settings.webhooks import WebhookSettings

STATE_PLACEHOLDER = "{repository}"


class Settings(PollingSettings):
    """All settings. The defaults are those of a new installation."""

    config: ConfigSettings = ConfigSettings()
    fleet: FleetSettings = FleetSettings()
    status: StatusSettings = StatusSettings()
    cache: str = declare(
        "~/.cache/reconciler",
        "The folder for local data, such as bare mirrors of all repositories. You can delete the folder while no "
        "process uses it. The folder has the mode 0700, because drafts can contain Secrets. A folder that other "
        "users can write to is an error.",
    )
    state_ref: str = declare(
        "refs/reconciler/state/{repository}",
        "The name of the ref that contains the state of one target. If the Git host allows only branches, use "
        "refs/heads/reconciler/state/{repository}.",
    )
    shard: str = declare(
        "1/1",
        "The shard of the targets that this process reconciles. i/n means the i-th of n shards (n is at most 1000), "
        "and 1/1 means all targets. The option --shard overrides this setting.",
    )
    git: GitSettings = GitSettings()
    signing: SigningSettings = SigningSettings()
    drafts: DraftSettings = DraftSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    review: ReviewSettings = ReviewSettings()
    guards: GuardSettings = GuardSettings()
    merge: MergeSettings = MergeSettings()
    rules: RuleSettings = RuleSettings()
    tenancy: TenancySettings = TenancySettings()
    functions: FunctionSettings = FunctionSettings()
    limits: LimitSettings = LimitSettings()
    rendering: RenderingSettings = RenderingSettings()
    sources: SourceSettings = SourceSettings()
    forge: ForgeSettings = ForgeSettings()
    server: ServerSettings = ServerSettings()
    console: ConsoleSettings = ConsoleSettings()
    health: HealthSettings = HealthSettings()
    webhooks: WebhookSettings = WebhookSettings()
    notifications: NotificationSettings = NotificationSettings()
    log: LogSettings = LogSettings()
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    _origins: SettingOrigins = PrivateAttr(default_factory=SettingOrigins)

    @property
    def origins(self) -> SettingOrigins:
        """The origins of the settings."""
        return self._origins

    def with_origins(self, origins: SettingOrigins) -> Settings:
        """Return the same settings with these origins."""
        settings = self.model_copy()
        settings._origins = origins
        return settings

    @property
    def listen_address(self) -> str:
        """The address of the HTTP server. "" if the service has no HTTP server."""
        return self.webhooks.listen or self.server.listen

    @property
    def listen_setting(self) -> str:
        """The name of the setting that sets `listen_address`. "" if the address is the default."""
        if self.webhooks.listen:
            return "webhooks.listen"
        return "server.listen" if "listen" in self.server.model_fields_set else ""

    @field_validator("shard")
    @classmethod
    def _check_shard(cls, value: str) -> str:
        parse_shard(value)
        return value

    @field_validator("state_ref")
    @classmethod
    def _check_state_ref(cls, value: str) -> str:
        prefix = value.removesuffix(STATE_PLACEHOLDER)
        # Allow no text after the placeholder, because state refs are found by their prefix.
        if prefix == value or STATE_PLACEHOLDER in prefix or not (value.startswith("refs/") and prefix.endswith("/")):
            raise ValueError(
                "must start with refs/ and end with /{repository}, for example refs/reconciler/state/{repository}"
            )
        if problem := validate_ref_name(f"{prefix}x"):
            raise ValueError(f"must produce ref names that Git accepts: {problem}")
        return value
