"""Write the generated pages of docs/reference, or check that they match the code.

    python scripts/make_reference.py            write cli.md, settings.md, findings.md and the pages in fields/
    python scripts/make_reference.py --check    exit 1 and name each page that differs

The command line reference comes from the commands, the settings reference from config/reconciler.yaml and the settings
models, the findings reference from the tables of finding codes, the fields of all kinds from the models in
`reconciler/api`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from kind_pages import GENERATED, build_kind_pages

from reconciler.cli.entry import commands
from reconciler.output.findings.formats import format_findings_page
from reconciler.reconcile.codes import ALL_CODES
from reconciler.settings import Settings

PROJECT = Path(__file__).resolve().parents[1]
REFERENCE = PROJECT / "docs" / "reference"
_SETTINGS_INTRODUCTION = """\
The program reads its settings once at start-up, from `./reconciler.yaml` or from the file of `--settings`.
An environment variable overrides a single setting: `RECONCILER_GIT__TIMEOUT_SECONDS=60` sets `git.timeout_seconds`.
The service reads the file again when it receives the signal HUP."""
_SETTING = re.compile(r"(?P<indent> *)(?P<name>[\w.]+):(?: (?P<value>.*))?")


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
    """Return the reference of all settings, in the order of config/reconciler.yaml."""
    lines = (PROJECT / "config" / "reconciler.yaml").read_text().splitlines()
    schema = Settings.model_json_schema()
    sections = [
        GENERATED,
        "# Settings",
        _SETTINGS_INTRODUCTION,
    ]
    for group, rows in _setting_groups(lines, schema).items():
        table = "\n".join(["| setting | default | type | meaning |", "|---|---|---|---|", *rows])
        sections.append(f"## {group}\n\n{table}" if group else f"## General\n\n{table}")
    return "\n\n".join(sections) + "\n"


def _setting_groups(lines: list[str], schema: Mapping[str, Any]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    path: list[str] = []
    comments: list[str] = []
    for line in lines:
        if line.lstrip().startswith("#"):
            comments.append(line.strip().removeprefix("#").strip())
        elif match := _SETTING.fullmatch(line):
            path = [*path[: len(match["indent"]) // 2], match["name"]]
            if match["value"] is not None:
                row = (".".join(path), match["value"], _type_of(schema, path), " ".join(comments))
                cells = (f"`{row[0]}`", f"`{_cell(row[1])}`", row[2], _cell(row[3]))
                groups.setdefault(".".join(path[:-1]), []).append(f"| {' | '.join(cells)} |")
            comments = []
        else:
            comments = []
    return groups


def _type_of(schema: Mapping[str, Any], path: list[str]) -> str:
    """Return the JSON type of a setting, or its allowed values."""
    node: Mapping[str, Any] = schema
    for name in path:
        reference = node.get("$ref", "").rpartition("/")[2]
        node = (schema["$defs"][reference] if reference else node).get("properties", {}).get(name, {})
    if "enum" in node:
        return ", ".join(f"`{value}`" for value in node["enum"])
    options = [item.get("type", "object") for item in node.get("anyOf", ()) if item.get("type") != "null"]
    return " or ".join(options) or str(node.get("type", "object"))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them."""
    pages = {
        "cli.md": command_page(),
        "settings.md": settings_page(),
        "findings.md": format_findings_page(ALL_CODES),
        **build_kind_pages(),
    }
    different = []
    for name, page in pages.items():
        file = REFERENCE / name
        if "--check" not in arguments:
            file.parent.mkdir(exist_ok=True)
            file.write_text(page)
        elif not file.is_file() or file.read_text() != page:
            different.append(name)
    for name in different:
        print(f"docs/reference/{name} differs from the code: run python scripts/make_reference.py", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
