"""Which notifications the passes over a real fleet send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import message_from_string, policy
from html import escape
from pathlib import Path
from typing import NoReturn

import pytest

from reconciler.bootstrap.notifications import build_channels
from reconciler.git.errors import GitError, RemoteBusyError, UnreachableError
from reconciler.git.mirror import Mirror
from reconciler.krm.findings import Finding, Severity
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.events import Event
from reconciler.notifications.observation import Observation
from reconciler.notifications.pass_observer import PassObserver
from reconciler.notifications.routes import Route
from reconciler.planning.model.shard import Shard, parse_shard
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.reconcile_pass import PassReport
from reconciler.settings import Settings
from tests.properties.test_second_pass import ACTIONS, update_open
from tests.scenarios.test_removals import build_five_clusters, build_set
from tests.scenarios.test_rollouts import build_rolled_out_world, roll_out, write_rule
from tests.support.git_repositories import commit_files, delete_ref, write_hook
from tests.support.notifications import NotificationHarness
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import STATE, World, package, variant

ALL_EVENTS = (Route("ops", tuple(Event)),)


@dataclass
class Fleet:
    """A world whose service sends notifications. `restart` starts a new process."""

    world: World
    routes: tuple[Route, ...] = ALL_EVENTS
    shard: Shard = field(default_factory=Shard)
    harness: NotificationHarness = field(init=False)

    def __post_init__(self) -> None:
        self.harness = NotificationHarness(self.world.folder / "cache" / "notifications.json", [*self.routes])
        self.restart()

    def restart(self) -> None:
        self.observations: list[Observation] = []
        self.observer = PassObserver(self.shard)
        self.service = self.world.service(observe=self._observe)
        self.harness.restart()

    def _observe(self, report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        self.observations.append(self.observer.observe(report, failures))
        return ()

    def sync(self, after: float = 0.0) -> list[str]:
        """Run one pass. Return the titles of the messages until the gather time after the pass has ended."""
        self.harness.now += after
        self.service.run()
        observations = [*self.observations]
        self.observations.clear()
        return self.harness.settle(*observations)


def publish(world: World, *clusters: str) -> None:
    for cluster in clusters:
        world.merge(cluster, "squash")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet whose packages are all published."""
    fleet = Fleet(begin(tmp_path, published))
    assert fleet.sync() == []
    return fleet


def test_the_first_drafts_of_a_fleet_are_one_message_per_package(tmp_path: Path) -> None:
    fleet = Fleet(begin(tmp_path, drafted), (Route("ops", (Event.DRAFTS_WAITING,)),))

    # A new ledger combines the messages.
    assert fleet.sync() == ["2 changes"]
    assert fleet.harness.channel.messages[0].lines == (
        "Review install gateway v1 on 2 targets",
        "Review install metrics v1 on 1 target",
    )


def test_an_update_is_one_message_for_all_targets(fleet: Fleet) -> None:
    release_gateway(fleet.world)

    assert fleet.sync() == ["Review update gateway v1 → v2 on 2 targets"]
    assert fleet.harness.channel.messages[-1].data == {
        "operation": "update", "owner": "PackageVariantSet default/gateway", "package": "gateway",
        "from": fleet.harness.channel.messages[-1].data["from"], "to": fleet.harness.channel.messages[-1].data["to"],
        "risks": [],
    }  # fmt: skip
    assert fleet.sync() == []
    fleet.restart()
    assert fleet.sync() == []


def release_gateway(world: World) -> None:
    world.release("gateway", "v2", package("gateway", replicas=7))
    world.write({"gateway.yaml": (world.config / "gateway.yaml").read_text().replace("revision: v1", "revision: v2")})


def test_a_published_draft_and_a_rejected_draft_are_reported(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    publish(fleet.world, "berlin")
    delete_ref(fleet.world.fleet, "refs/heads/drafts/lisbon")

    assert fleet.sync() == ["Published on berlin: 1 package", "Rejected: update gateway v1 → v2 on 1 target"]
    assert fleet.harness.channel.messages[-2].lines == ("berlin/gateway: revision 2",)
    assert fleet.sync() == []


def test_a_rejection_by_command_is_reported(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    fleet.world.run_review_action("drop", "berlin/gateway")

    assert fleet.sync() == ["Rejected: update gateway v1 → v2 on 1 target"]


def test_a_local_change_on_a_draft_is_no_new_message(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    fleet.world.edit("drafts/berlin", "gateway/deployment.yaml", "replicas: 7", "replicas: 8")

    assert fleet.sync() == []


def test_a_conflict_is_reported_until_its_draft_is_published(fleet: Fleet) -> None:
    fleet.world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    fleet.world.release("metrics", "v2", package("metrics", replicas=3))
    fleet.world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    sent = [title for _ in range(3) for title in fleet.sync()]

    conflict = "Conflict in metrics: deployment.yaml: Deployment metrics: spec.replicas on 1 target"
    assert sent == ["Review update metrics v1 → v2 on 1 target", conflict]
    assert "local 5 is kept, upstream 3 is not applied" in fleet.harness.channel.messages[-1].lines[0]


def test_a_group_has_the_highest_severity_of_its_drafts(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    fleet.world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 7", "replicas: 8")
    fleet.world.release("gateway", "v2", package("gateway", replicas=9))
    fleet.sync()

    message = next(each for each in reversed(fleet.harness.channel.messages) if each.event == "drafts_waiting")
    assert (message.severity, message.data["risks"]) == (Severity.WARNING, ["has conflicts"])
    assert message.lines == ("berlin/gateway", "lisbon/gateway: has conflicts")


def test_a_blocked_package_and_its_recovery_are_reported(fleet: Fleet) -> None:
    metrics = variant("metrics-berlin", "berlin", "metrics", "v9")
    fleet.world.write({"metrics.yaml": metrics})
    sent = fleet.sync()
    fleet.restart()
    assert fleet.sync() == []
    fleet.world.write({"metrics.yaml": metrics.replace("v9", "v1")})

    assert [title.partition(":")[0] for title in (*sent, *fleet.sync())] == ["Blocked", "No longer blocked"]


def test_an_invalid_config_file_is_reported_with_its_line(fleet: Fleet) -> None:
    fleet.world.write({"broken.yaml": "a: [\n"})
    sent = fleet.sync()

    assert sent == ["Blocked: broken.yaml: YamlSyntax"]
    assert fleet.harness.channel.messages[-1].data["file"] == "broken.yaml"


def test_an_unreadable_config_file_does_not_end_the_conditions_of_other_files(fleet: Fleet) -> None:
    fleet.world.write({"web.yaml": variant("web", "berlin", "web", extra="unknown: 1")})
    (title,) = fleet.sync()
    assert title.startswith("Blocked: PackageVariant default/web: ")
    fleet.world.write({"web.yaml": "a: [\n"})

    assert fleet.sync() == ["Blocked: web.yaml: YamlSyntax"]


@pytest.mark.parametrize("targets", ["region=north", "greenhouse.sap/cluster in (berlin)", "!south,region!=south"])
def test_a_route_selects_targets_by_the_labels_of_the_config(tmp_path: Path, targets: str) -> None:
    fleet = Fleet(begin(tmp_path, published), (Route("ops", targets=targets),))
    fleet.sync()
    release_gateway(fleet.world)

    assert fleet.sync() == ["Review update gateway v1 → v2 on 1 target"]
    assert fleet.harness.channel.messages[-1].lines == ("berlin/gateway",)


def test_held_deletions_are_one_message_per_owner(tmp_path: Path) -> None:
    fleet = Fleet(begin(tmp_path, build_five_clusters))
    fleet.sync()
    fleet.world.write({"gateway.yaml": build_set(2)})

    assert fleet.sync() == ["Deletion held: 3 packages of PackageVariantSet default/gateway"]
    assert fleet.sync() == []


def test_a_proposed_deletion_is_a_risk(tmp_path: Path) -> None:
    fleet = Fleet(begin(tmp_path, build_five_clusters))
    fleet.sync()
    fleet.world.write({"gateway.yaml": build_set(4)})

    assert fleet.sync() == ["Review delete gateway on 1 target"]
    message = fleet.harness.channel.messages[-1]
    assert (message.severity, message.data["risks"]) == (Severity.WARNING, ["deletes the package"])
    fleet.world.merge("c4", "squash", "removals/c4")
    assert fleet.sync() == ["Published on c4: 1 package"]


def test_an_unavailable_remote_keeps_its_drafts_and_is_reported_after_15_minutes(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    fleet.world.fleet.rename(fleet.world.folder / "gone.git")
    url = str(fleet.world.fleet)

    assert fleet.sync() == []
    assert fleet.sync(after=900) == [f"Remote unavailable: {url}"]
    assert fleet.harness.channel.messages[-1].lines[0].startswith("berlin, lisbon: ")
    (fleet.world.folder / "gone.git").rename(fleet.world.fleet)
    fleet.restart()
    assert fleet.sync() == [f"Remote available again: {url}"]
    assert fleet.sync() == []


@pytest.mark.parametrize(
    ("shard", "error", "expected"),
    [
        pytest.param(Shard(1, 2), UnreachableError("down"), ["https://git.example/up"], id="first-shard"),
        pytest.param(Shard(2, 2), UnreachableError("down"), [], id="other-shard"),
        pytest.param(Shard(1, 2), RemoteBusyError("the fetch is still running"), [], id="late"),
    ],
)
def test_an_upstream_that_cannot_be_read(tmp_path: Path, shard: Shard, error: GitError, expected: list[str]) -> None:
    report = begin(tmp_path, published).sync().report
    observation = PassObserver(shard).observe(report, {"https://git.example/up": error})
    conditions = [each for each in observation.conditions if each.event is Event.REMOTE_UNAVAILABLE]

    assert [condition.group for condition in conditions] == expected
    assert [item.target for condition in conditions for item in condition.items] == [""] * len(expected)
    # A late remote neither begins nor ends a condition.
    assert observation.covers("/remote https://git.example/up") is not isinstance(error, RemoteBusyError)


@pytest.mark.slow
def test_a_refused_push_is_reported_once_per_target(fleet: Fleet) -> None:
    write_hook(fleet.world.fleet, "pre-receive", "echo refused by process $$ >&2; exit 1")
    release_gateway(fleet.world)

    assert fleet.sync() == [
        "Blocked: Repository berlin: PushRefused",
        "Blocked: Repository lisbon: PushRefused",
    ]
    # The message of the host differs in each pass.
    fleet.restart()
    assert fleet.sync() == []


def test_a_failed_push_makes_its_remote_unavailable(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise UnreachableError("the host does not answer")

    monkeypatch.setattr(Mirror, "push", fail)
    release_gateway(fleet.world)
    sent = [*fleet.sync(), *fleet.sync(after=900)]

    assert sent == [f"Remote unavailable: {fleet.world.fleet}"]
    assert {item.target for item in fleet.harness.channel.messages[-1].items} == {"berlin", "lisbon"}


def test_a_damaged_state_of_a_target_is_reported_and_keeps_its_drafts(fleet: Fleet) -> None:
    release_gateway(fleet.world)
    fleet.sync()
    commit_files(fleet.world.fleet, f"{STATE}berlin", {"destination.json": b"{"}, "damage", 1_100_000_000)

    assert fleet.sync() == ["Blocked: Repository berlin: StateUnreadable"]
    assert fleet.sync() == []


def test_each_shard_reports_its_own_targets(tmp_path: Path) -> None:
    world = begin(tmp_path, published).with_settings(shard="2/2")
    fleets = [Fleet(world.with_settings(shard=f"{index}/2"), shard=parse_shard(f"{index}/2")) for index in (1, 2)]
    for index, each in enumerate(fleets):
        each.harness.file = tmp_path / "cache" / f"{index}.json"
        each.restart()
        assert each.sync() == []
    release_gateway(world)
    world.write({"broken.yaml": "a: [\n"})
    for each in fleets:
        each.sync()

    targets = [[item.target for message in each.harness.channel.messages for item in message.items] for each in fleets]
    assert sorted(target for names in targets for target in names) == ["", "berlin", "lisbon"]
    # Only the first shard reports errors of the config.
    assert "" in targets[0]


@pytest.mark.slow
def test_a_rollout_is_reported_wave_by_wave(tmp_path: Path) -> None:
    world = begin(tmp_path, build_rolled_out_world)
    fleet = Fleet(world, (Route("ops", (Event.ROLLOUT_ADVANCED, Event.ROLLOUT_STOPPED)),))
    rule = "rule count of ClusterOverridePolicy site"
    assert fleet.sync() == [f"Rollout advanced: {rule}: all waves are open"]
    write_rule(world, 7)
    assert [*fleet.sync(), *fleet.sync()] == []
    roll_out(world, "amsterdam")
    assert [*fleet.sync(), *fleet.sync()] == [f"Rollout advanced: {rule}: wave 1 is open"]
    world.revert("amsterdam")

    assert [*fleet.sync(), *fleet.sync()] == [f"Rollout stopped: {rule}: wave 1 stays closed"]


def test_findings_about_channels_are_findings_of_the_pass(tmp_path: Path) -> None:
    finding = PassCodes.NOTIFICATION_URL_REFUSED.finding("the connector is retired")
    service = begin(tmp_path, published).service(observe=lambda *_: (finding,))

    assert service.run()
    assert finding in service.summary.findings


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "sequence",
    [
        ("squash", "revert", "revert"),
        ("deletion",),
        ("edit of the draft", "squash", "revert"),
        ("force push of the cluster", "moved tag"),
    ],
    ids=", ".join,
)
def test_further_passes_over_equal_refs_send_nothing(tmp_path: Path, sequence: tuple[str, ...]) -> None:
    fleet = Fleet(begin(tmp_path, update_open))
    fleet.sync()
    for action in sequence:
        ACTIONS[action](fleet.world)
    # The second pass can detect the result of an action, and the pass after it changes nothing.
    sent = [*fleet.sync(), *fleet.sync(), *fleet.sync()]

    assert len(sent) == len(set(sent))
    for _ in range(2):
        fleet.restart()
        assert fleet.sync() == []


CHANNELS = [
    {"name": "slack", "kind": "slack", "url_file": "/none"},
    {"name": "teams", "kind": "teams", "url_file": "/none"},
    {"name": "webhook", "kind": "webhook", "url": "https://a.example", "secret_file": "/none"},
    {"name": "email", "kind": "email", "host": "a.example", "sender": "a@b.example", "recipients": ["c@d.example"]},
]


def test_hostile_text_of_the_config_is_escaped_in_all_channels(fleet: Fleet) -> None:
    field = "x *b* _i_ `c` <!channel> @here [l](https://evil.example) <b>&amp;"
    fleet.world.write({"hostile.yaml": variant("hostile", "berlin", "web", extra=f"{json.dumps(field)}: 1")})
    fleet.sync()
    message = next(
        message for message in fleet.harness.channel.messages if any("@here" in line for line in message.lines)
    )
    channels = build_channels(Settings.model_validate({"notifications": {"channels": CHANNELS}}), ChannelFindings())
    texts = {name: channel.format(message) for name, channel in channels.items()}

    assert field in json.loads(texts["webhook"])["data"]["lines"][0]
    # Slack and Teams show these kinds of text unchanged.
    slack = json.loads(texts["slack"])["blocks"]
    assert [block["text"]["type"] for block in slack[:2]] == ["plain_text", "plain_text"]
    assert field in slack[1]["text"]["text"]
    card = json.loads(texts["teams"])["attachments"][0]["content"]
    assert {inline["type"] for block in card["body"] for inline in block["inlines"]} == {"TextRun"}
    assert field in card["body"][1]["inlines"][0]["text"]
    mail = message_from_string(texts["email"], policy=policy.default)
    html = mail.get_body(("html",))
    assert html is not None
    assert escape(field) in html.get_content()
    assert "<b>" not in html.get_content()
