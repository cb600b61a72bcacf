"""The names under which a trace keeps what a function outside this process was, so that a changed one is noticed."""

from __future__ import annotations

from reconciler.packages.kptfile import FunctionSpec

_FUNCTION = "function"


def is_function(name: str) -> bool:
    """Return whether a name of a trace stands for a function."""
    return name.startswith(f"{_FUNCTION} ")


def fact_name(spec: FunctionSpec) -> str:
    """Return the name under which a trace keeps what a function was; `fact_spec` reads it."""
    kind, text = ("exec", spec.exec) if spec.exec else ("image", spec.image)
    words = (_FUNCTION, kind, text, *([spec.tag] if spec.tag else []))
    return " ".join(word.replace("%", "%25").replace(" ", "%20") for word in words)


def fact_spec(name: str) -> FunctionSpec:
    """Return the entry of a pipeline that a fact's name stands for; one that nothing can run for any other name."""
    match [word.replace("%20", " ").replace("%25", "%") for word in name.split(" ")]:
        case [_, "exec", command]:
            return FunctionSpec(exec=command)
        case [_, "image", image, *tag]:
            return FunctionSpec(image=image, tag="".join(tag))
        case _:
            # state is a branch, and others can write to it
            return FunctionSpec()
