"""Reading the template of a set's target (porch 11.1)."""

from __future__ import annotations

from reconciler.rules.variants.fields import Fields
from reconciler.rules.variants.read_parts import (
    FUNCTION_FIELDS,
    read_function,
    read_function_config,
    read_merge_choices,
)
from reconciler.rules.variants.set_model import (
    FunctionTemplate,
    InjectorTemplate,
    MapEntry,
    MapTemplate,
    Template,
    Text,
)

_TEMPLATE_FIELDS = (
    "downstream", "adoptionPolicy", "deletionPolicy", "labels", "labelExprs", "annotations", "annotationExprs",
    "packageContext", "pipeline", "injectors", "updateStrategy", "conflictPolicy",
)  # fmt: skip


def read_template(template: Fields) -> Template:
    """Return a template; its faults are noted with their whole path."""
    template = _read_aliases(template)
    template.refuse_unknown(*_TEMPLATE_FIELDS)
    adoption = _read_policy(template, "adoptionPolicy", "adoptNone", "adoptExisting")
    deletion = _read_policy(template, "deletionPolicy", "orphan", "delete")
    downstream = template.fields("downstream")
    downstream.refuse_unknown("repo", "repoExpr", "package", "packageExpr")
    repo = _read_downstream(template, downstream, "repo", knows_repository=False)
    package = _read_downstream(template, downstream, "package")
    labels = _read_map(template, "labels", "labelExprs")
    annotations = _read_map(template, "annotations", "annotationExprs")
    context = template.fields("packageContext")
    context.refuse_unknown("data", "dataExprs", "removeKeys", "removeKeyExprs")
    data, remove_keys = _read_map(context, "data", "dataExprs"), _read_remove_keys(context)
    injectors = tuple(_read_injector(entry) for entry in template.entries("injectors"))
    pipeline = template.fields("pipeline")
    pipeline.refuse_unknown("mutators", "validators")
    mutators, validators = _read_functions(pipeline, "mutators"), _read_functions(pipeline, "validators")
    strategy, conflicts = read_merge_choices(template)
    return Template(
        repo, package, adoption, deletion, labels, annotations, data, remove_keys, injectors, validators, mutators,
        strategy, conflicts,
    )  # fmt: skip


def _read_aliases(template: Fields) -> Fields:
    template = template.one_or_many("injectors").one_or_many("injectorExprs")
    if not template.has("injectorExprs"):
        return template
    template.faults.warn(f"{template.at('injectorExprs')} is read as more injectors")
    injectors = [item for name in ("injectors", "injectorExprs") for _, item in template.items(name)]
    return template.replaced({"injectors": injectors, "injectorExprs": None})


def _read_policy(template: Fields, name: str, first: str, second: str) -> str | None:
    return template.choice(name, (first, second), f'{template.at(name)} can only be "{first}" or "{second}"')


def _read_downstream(template: Fields, downstream: Fields, name: str, *, knows_repository: bool = True) -> Text | None:
    plain, expression = downstream.text(name), downstream.text(f"{name}Expr")
    if plain and expression:
        names = f"`downstream.{name}` and `downstream.{name}Expr`"
        template.faults.add(f"{template.path} may specify only one of {names}")
    if expression:
        return _expression(downstream, f"{name}Expr", knows_repository=knows_repository)
    return Text(plain) if plain else None


def _read_map(fields: Fields, name: str, expressions: str) -> MapTemplate:
    return MapTemplate(fields.string_map(name), read_map_entries(fields, expressions))


def read_map_entries(fields: Fields, name: str) -> tuple[MapEntry, ...]:
    """Return a list of MapExprs; each has one form of key and one form of value."""
    return tuple(_read_map_entry(entry) for entry in fields.one_or_many(name).entries(name))


def _read_map_entry(entry: Fields) -> MapEntry:
    entry.refuse_unknown("key", "keyExpr", "value", "valueExpr")
    return MapEntry(_read_either(entry, "key"), _read_either(entry, "value"))


def _read_either(entry: Fields, name: str) -> Text:
    plain, expression = entry.text(name), entry.text(f"{name}Expr")
    # an empty value is a value; an empty key is none
    has_plain = entry.has(name) if name == "value" else bool(plain)
    if has_plain and expression:
        entry.faults.add(f"{entry.path} may specify only one of `{name}` and `{name}Expr`")
    if not has_plain and not expression:
        entry.faults.add(f"{entry.path} must specify `{name}` or `{name}Expr`")
    return _expression(entry, f"{name}Expr") if expression else Text(plain)


def _read_remove_keys(context: Fields) -> tuple[Text, ...]:
    plain = tuple(Text(key) for key in context.texts("removeKeys"))
    expressions = context.texts("removeKeyExprs")
    entries = Fields(context.path, {f"removeKeyExprs[{i}]": text for i, text in enumerate(expressions)}, context.faults)
    return plain + tuple(_expression(entries, name) for name in entries.data)


def _read_injector(entry: Fields) -> InjectorTemplate:
    entry.refuse_unknown("group", "version", "kind", "name", "nameExpr")
    plain, expression = entry.text("name"), entry.text("nameExpr")
    if plain and expression:
        entry.faults.add(f"{entry.path} may specify only one of `name` and `nameExpr`")
    if not plain and not expression:
        entry.faults.add(f"{entry.path} must specify either `name` or `nameExpr`")
    name = _expression(entry, "nameExpr") if expression else Text(plain)
    group, version, kind = (entry.optional_text(field) for field in ("group", "version", "kind"))
    return InjectorTemplate(name, group, version, kind)


def _read_functions(pipeline: Fields, name: str) -> tuple[FunctionTemplate, ...]:
    functions = []
    for entry in pipeline.entries(name):
        entry.refuse_unknown(*FUNCTION_FIELDS, "configMapExprs")
        function, config = read_function(entry), read_map_entries(entry, "configMapExprs")
        read_function_config(entry, function, more_config=bool(config))
        functions.append(FunctionTemplate(function, config))
    return tuple(functions)


def _expression(fields: Fields, name: str, *, knows_repository: bool = True) -> Text:
    return Text(fields.text(name), fields.at(name), True, knows_repository)
