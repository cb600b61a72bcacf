"""Lossless YAML: read a document as data, and write changed data to the text without changes to other lines."""

from reconciler.krm.yaml.comments import DataPath
from reconciler.krm.yaml.document import Document
from reconciler.krm.yaml.emit import WIDE_INDENT_STYLE, emit
from reconciler.krm.yaml.errors import DEFAULT_YAML_LIMITS, YamlError, YamlLimits
from reconciler.krm.yaml.file import YamlFile, parse_yaml, read_core_yaml
from reconciler.krm.yaml.masked_names import NameMask
from reconciler.krm.yaml.rendered_text import NormalizedDocument, normalize_document
from reconciler.krm.yaml.reuse_formatting import FormattingSource, ReusedFormatting

__all__ = [
    "DEFAULT_YAML_LIMITS",
    "WIDE_INDENT_STYLE",
    "DataPath",
    "Document",
    "FormattingSource",
    "NameMask",
    "NormalizedDocument",
    "ReusedFormatting",
    "YamlError",
    "YamlFile",
    "YamlLimits",
    "emit",
    "normalize_document",
    "parse_yaml",
    "read_core_yaml",
]
