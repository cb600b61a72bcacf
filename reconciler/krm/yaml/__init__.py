"""Lossless YAML: documents are read as data, edited as text, and written back to the byte where nobody touched them."""

from reconciler.krm.yaml.borrowed import Borrowed, Original
from reconciler.krm.yaml.comments import Path
from reconciler.krm.yaml.core import read_core
from reconciler.krm.yaml.document import Document
from reconciler.krm.yaml.emit import WIDE_STYLE, emit
from reconciler.krm.yaml.error import YamlError
from reconciler.krm.yaml.file import YamlFile, parse
from reconciler.krm.yaml.limits import DEFAULT_LIMITS, YamlLimits

__all__ = [
    "DEFAULT_LIMITS",
    "WIDE_STYLE",
    "Borrowed",
    "Document",
    "Original",
    "Path",
    "YamlError",
    "YamlFile",
    "YamlLimits",
    "emit",
    "parse",
    "read_core",
]
