"""How answers are printed: a table for people, JSON and YAML for programs.

Rule: the three forms say the same; programs get every field by its name, people get columns that fit. Every command
prints through ``say``, so that no name that a client chose reaches a terminal as it is.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from metastore.redaction import printable, printable_lines

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


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; ``err``: on stderr, ``nl``: with a line break behind it."""
    click.echo(printable_lines(str(text)), err=err, nl=nl)


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], form: str) -> None:
    """Print rows under their columns."""
    if form == "table":
        say(table(columns, rows))
    else:
        show_value([dict(zip(columns, row, strict=True)) for row in rows], form)


def show_fields(fields: Mapping[str, Any], form: str) -> None:
    """Print one object."""
    if form == "table":
        width = max(map(len, fields), default=0)
        say("\n".join(f"{name:<{width}}  {_cell(value)}" for name, value in fields.items()))
    else:
        show_value(dict(fields), form)


def show_value(value: Any, form: str) -> None:
    """Print any value for a program."""
    if form == "yaml":
        import yaml

        text = json.dumps(value, default=str, ensure_ascii=False)
        is_plain = printable(text) == text  # else all beyond ASCII is escaped as YAML does it, so that nothing is lost
        say(yaml.safe_dump(json.loads(text), sort_keys=False, allow_unicode=is_plain), nl=False)
    else:
        say(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return columns as wide as their widest cell; the last is not padded."""
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
    return printable(str(value).replace("\n", " "))
