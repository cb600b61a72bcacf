"""Templates of messages: Jinja2 files in `notifications.templates_dir`, with a sandbox and escaping for each format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from reconciler.lazy_dataclasses import dataclass
from reconciler.notifications.escaping import escape_markdown, escape_slack
from reconciler.notifications.messages import Message

TemplateFormat = Literal["slack", "teams", "txt", "html"]
"""The format of a template, which is also the suffix of its file, such as `drafts_waiting.slack.j2`."""
_MAX_CHARACTERS = 20_000


class TemplateFailedError(Exception):
    """A template cannot be read or rendered. The message contains the file and the reason."""


def _keep(text: str) -> str:
    return text


_ESCAPES: dict[TemplateFormat, Callable[[str], str]] = {
    "slack": escape_slack, "teams": escape_markdown, "txt": _keep,
}  # fmt: skip


@dataclass(frozen=True)
class Templates:
    """The templates in a folder. None as the folder means that there are no templates."""

    folder: Path | None = None

    def render(self, message: Message, template_format: TemplateFormat) -> str | None:
        """Return the text of a message in a format. Return None if there is no template for its event.

        The context of the template is the public payload of the message. Each value is escaped for the format.

        Raises:
            TemplateFailedError: The template cannot be rendered.
        """
        name = f"{message.event}.{template_format}.j2"
        if self.folder is None or not (self.folder / name).exists():
            return None
        try:
            text = _create_environment(template_format).from_string((self.folder / name).read_text())
            rendered = str(text.render(message.payload)).strip()
        # Catch all exceptions, because a template is user input, and Jinja2 raises any exception of an expression.
        except Exception as error:
            line = f":{number}" if (number := getattr(error, "lineno", None)) else ""
            raise TemplateFailedError(
                f"the template {self.folder / name}{line} cannot be rendered. The error is"
                f' "{type(error).__name__}: {error}"'
            ) from error
        if not rendered or len(rendered) > _MAX_CHARACTERS:
            raise TemplateFailedError(
                f"the rendered text of the template {self.folder / name} must have 1 to {_MAX_CHARACTERS} characters,"
                f" but has {len(rendered)}"
            )
        return rendered


def _create_environment(template_format: TemplateFormat) -> Any:
    # Import Jinja2 here, because most installations have no templates.
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    if template_format == "html":
        return SandboxedEnvironment(autoescape=True, undefined=StrictUndefined)
    escape = _ESCAPES[template_format]
    # The escaping of Jinja2 is for HTML only. `finalize` escapes the value of each expression.
    return SandboxedEnvironment(
        autoescape=False,
        undefined=StrictUndefined,
        finalize=lambda value: value if value is None or _is_undefined(value) else escape(str(value)),
    )


def _is_undefined(value: object) -> bool:
    from jinja2 import Undefined

    return isinstance(value, Undefined)
