"""`reconciler sync`: one pass, pushed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    fleet_option,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
    shard_option,
)
from reconciler.daemon.passes import Passes, Told, UnpushedDraft
from reconciler.reporting.findings import finding_lines, findings_data
from reconciler.wiring import build_memory, build_parts, build_push


@click.command("sync")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell the result.")
def command(
    config: str | None,
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    output: str,
) -> int:
    """Reconcile once: compute every cluster's drafts and push them, with status files and state."""
    with told_plainly(), progress() as show:
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        publisher = build_push(settings)
        parts = build_parts(settings, config_of(settings), progress=show)
        passes = Passes(
            parts.source, parts.remotes, parts.tools, publisher, build_memory(settings, config_of(settings))
        )
        passes.run()
    told = passes.told
    click.echo(json.dumps(_data(told), indent=2) if output == "json" else _text(told))
    return max(status_of(told.findings), FINE if told.clean else ERROR_FINDING)


def _data(told: Told) -> dict[str, object]:
    return {
        "config": told.config,
        "counts": told.counts,
        "drafts": told.drafts,
        **({"unpushed": _unpushed_data(told.unpushed)} if told.unpushed else {}),
        "findings": findings_data(told.findings),
        **({"statusNotWritten": told.unwritten} if told.unwritten else {}),
    }


def _text(told: Told) -> str:
    lines = finding_lines(told.findings)
    lines += [f"the status was not written: {told.unwritten}"] if told.unwritten else []
    lines += [
        f"draft    {branch} is at {head[:12]}" for heads in told.drafts.values() for branch, head in heads.items()
    ]
    lines += [_unpushed_line(one) for drafts in told.unpushed.values() for one in drafts]
    counts = ", ".join(f"{count} {what}" for what, count in told.counts.items())
    return "\n".join([*lines, counts])


def _unpushed_line(one: UnpushedDraft) -> str:
    if not one.is_known:
        at = "the state of the remote is unknown"
    elif one.head is None:
        at = "the remote has no such branch"
    else:
        at = f"the remote has it at {one.head[:12]}"
    return f"draft    {one.branch} was not pushed ({one.reason}): {at}"


def _unpushed_data(unpushed: Mapping[str, Sequence[UnpushedDraft]]) -> dict[str, dict[str, dict[str, object]]]:
    return {
        name: {
            one.branch: {"reason": one.reason, **({"remoteHead": one.head} if one.is_known else {})} for one in drafts
        }
        for name, drafts in unpushed.items()
    }
