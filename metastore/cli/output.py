"""How answers are printed: a table for people, JSON and YAML for programs.

Rule: the three forms say the same; programs get every field by its name, people get columns that fit.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

FORMS = ("table", "json", "yaml")
Command = TypeVar("Command", bound=Callable[..., Any])


def form_option(command: Command) -> Command:
    """``-o table|json|yaml``."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(FORMS),
        default="table",
        show_default=True,
        help="How to print the answer.",
    )(command)


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> None:
    """Print rows under their columns."""
    if form == "table":
        click.echo(table(columns, rows))
    else:
        show_value([dict(zip(columns, row, strict=True)) for row in rows], form)


def show_fields(fields: Mapping[str, Any], form: str) -> None:
    """Print one object."""
    if form == "table":
        width = max(map(len, fields), default=0)
        click.echo("\n".join(f"{name:<{width}}  {_cell(value)}" for name, value in fields.items()))
    else:
        show_value(dict(fields), form)


def show_value(value: Any, form: str) -> None:
    """Print any value for a program."""
    if form == "yaml":
        import yaml

        click.echo(
            yaml.safe_dump(json.loads(json.dumps(value, default=str)), sort_keys=False, allow_unicode=True), nl=False
        )
    else:
        click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns as wide as their widest cell; the last is not padded."""
    lines = [[column.upper() for column in columns], *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).replace("\n", " ")
