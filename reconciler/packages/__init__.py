"""The kpt package engine: packages, Kptfiles, function pipelines, built-in functions, and three-way updates.

The rules for charts (`charts`), Kustomize overlays (`kustomize`) and SOPS documents belong here too. Functions of this
package convert file trees into file trees and findings, without side effects. Code that fetches, starts processes or
writes Git objects does not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
