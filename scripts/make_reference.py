"""Write the generated files of docs/reference and config, or check that they match the code.

    python scripts/make_reference.py            write the files
    python scripts/make_reference.py --check    exit 1 and name each file that differs

The command line reference comes from the commands, the findings reference from the tables of finding codes, and the
fields of all kinds from the models in `reconciler/api`. The settings reference, the example of all settings and the
JSON Schema of the settings come from the models in `reconciler/settings`. The metrics reference comes from the
declarations in `reconciler/telemetry/metrics.py`. The OpenAPI document comes from the endpoints in
`reconciler/server/api`.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from kind_pages import GENERATED, build_kind_pages
from metrics_page import build_metrics_page

from reconciler.cli.entry import commands
from reconciler.krm.yaml.emit import format_scalar
from reconciler.output.findings.formats import format_findings_page
from reconciler.reconcile.codes import ALL_CODES
from reconciler.server.api.openapi import build_openapi_document
from reconciler.settings import Settings, build_schema_text

PROJECT = Path(__file__).resolve().parents[1]
_SETTINGS_INTRODUCTION = """\
The program reads its settings once at start-up, from `./reconciler.yaml` or from the file of `--settings`.
An environment variable overrides a single setting: `RECONCILER_GIT__TIMEOUT_SECONDS=60` sets `git.timeout_seconds`.
The service reads the file again when it receives the signal HUP."""
_EXAMPLE_HEAD = """\
# All settings with their defaults. scripts/make_reference.py generates this file.
# Copy the settings that you change to ./reconciler.yaml, or to another file that you pass with --settings.
# The environment variable RECONCILER_<GROUP>__<KEY> overrides one setting, for example
# RECONCILER_GIT__TIMEOUT_SECONDS=60."""


def command_page() -> str:
    """Return the reference of all commands and their options."""
    context = click.Context(commands, info_name="reconciler")
    sections = [
        GENERATED,
        "# Command line",
        (commands.help or "").strip(),
        "`--help` prints the options of a command. All commands have the same [exit statuses](exit-codes.md).",
        *_command_sections(commands, context),
    ]
    return "\n\n".join(sections) + "\n"


def _command_sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield f"## {inner.command_path}\n\n{_help_text(command)}"
            yield from (section.replace("## ", "### ", 1) for section in _command_sections(command, inner))
        else:
            yield "\n\n".join(part for part in _command_parts(command, inner) if part)


def _command_parts(command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    yield f"## {context.command_path}"
    yield _help_text(command)
    yield f"```text\n{usage}\n```"
    records = [
        record
        for parameter in command.get_params(context)
        if (record := parameter.get_help_record(context)) and record[1]
    ]
    rows = [f"| `{_cell(names)}` | {_cell(text)} |" for names, text in records]
    yield "\n".join(["| option | meaning |", "|---|---|", *rows])


def _help_text(command: click.Command) -> str:
    """Return the help of a command with one line per paragraph."""
    paragraphs = (command.help or command.short_help or "").replace("\b\n", "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs).strip()


def settings_page() -> str:
    """Return the reference of all settings."""
    groups: dict[str, list[str]] = {}
    for setting in list_settings(Settings.model_json_schema()):
        cells = (f"`{setting.path}`", f"`{_cell(setting.value)}`", setting.type, _cell(setting.description))
        groups.setdefault(setting.group, []).append(f"| {' | '.join(cells)} |")
    sections = [GENERATED, "# Settings", _SETTINGS_INTRODUCTION]
    for group, rows in sorted(groups.items(), key=lambda entry: entry[0] != ""):
        table = "\n".join(["| setting | default | type | meaning |", "|---|---|---|---|", *rows])
        sections.append(f"## {group or 'General'}\n\n{table}")
    return "\n\n".join(sections) + "\n"


def settings_example() -> str:
    """Return the settings file with all settings and their defaults."""
    lines = [_EXAMPLE_HEAD]
    written: list[str] = []
    for setting in list_settings(Settings.model_json_schema()):
        groups = setting.path.split(".")[:-1]
        common = next((i for i, pair in enumerate(zip(written, groups, strict=False)) if pair[0] != pair[1]), None)
        start = min(len(written), len(groups)) if common is None else common
        if groups[:1] != written[:1] or not groups:
            lines.append("")
        lines += [f"{'  ' * depth}{groups[depth]}:" for depth in range(start, len(groups))]
        written, indent = groups, "  " * len(groups)
        lines += textwrap.wrap(setting.description, 120, initial_indent=f"{indent}# ", subsequent_indent=f"{indent}# ",
                               break_long_words=False, break_on_hyphens=False)  # fmt: skip
        lines.append(f"{indent}{setting.path.rpartition('.')[2]}: {setting.value}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Setting:
    """A setting: its path, its default in YAML, its type and its description."""

    path: str
    value: str
    type: str
    description: str

    @property
    def group(self) -> str:
        """The path of the group, or "" for a setting without a group."""
        return self.path.rpartition(".")[0]


def list_settings(schema: Mapping[str, Any]) -> Iterator[Setting]:
    """Yield all settings in the order of the models."""
    yield from _list_group(schema, schema, "")


def _list_group(group: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> Iterator[Setting]:
    for name, node in group["properties"].items():
        reference = node.get("$ref", "").rpartition("/")[2]
        if reference:
            yield from _list_group(schema["$defs"][reference], schema, f"{prefix}{name}.")
        else:
            yield Setting(prefix + name, _format_default(node["default"]), _type_of(node), node["description"])


def _format_default(value: Any) -> str:
    return format_scalar(value, flow=False) if isinstance(value, str) and value else json.dumps(value)


def _type_of(node: Mapping[str, Any]) -> str:
    """Return the JSON type of a setting, or its allowed values."""
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    return str(node.get("type", "object"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them."""
    pages = {
        "docs/reference/cli.md": command_page(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/findings.md": format_findings_page(ALL_CODES),
        "docs/reference/metrics.md": build_metrics_page(),
        "docs/reference/openapi.json": json.dumps(build_openapi_document(), indent=1) + "\n",
        **{f"docs/reference/{name}": page for name, page in build_kind_pages().items()},
        "config/reconciler.yaml": settings_example(),
        "config/schema.json": build_schema_text(),
    }
    different = []
    for name, page in pages.items():
        file = PROJECT / name
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(page)
        elif not file.is_file() or file.read_text() != page:
            different.append(name)
    for name in different:
        print(f"{name} differs from the code: run python scripts/make_reference.py", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
