"""The README of the Helm chart: every value with its default, and with the comment above it as its meaning."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "transaction-metastore"
_LINE = re.compile(r"(?P<indent> *)(?:# ?(?P<comment>.*)|(?P<key>[\w.-]+):.*)$")


def page() -> Iterator[str]:
    """Yield the README in pieces."""
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    yield f"""<!-- Generated from values.yaml and Chart.yaml by `make docs`; do not edit. -->

# {about["name"]}

{about["description"]}. Chart {about["version"]}, Kubernetes {about["kubeVersion"].split("-")[0].lstrip(">=")} or newer.

How to install it: [in Kubernetes and in containers](../../../docs/how-to/kubernetes.md). `ci/` has values for these
shapes, and `deploy/k8s` what they render to:

"""
    for path in sorted((CHART / "ci").glob("*.yaml")):
        yield f"- [`{path.name}`](ci/{path.name}): {path.read_text().splitlines()[0].lstrip('# ')}\n"
    yield "\n| Value | Default | Meaning |\n|---|---|---|\n"
    text = (CHART / "values.yaml").read_text()
    said = meanings(text)
    for name, default in leaves(yaml.safe_load(text), said):
        yield f"| `{name}` | `{json.dumps(default)}` | {said.get(name, '').replace('|', chr(92) + '|')} |\n"


def meanings(text: str) -> dict[str, str]:
    """Return the comments right above the keys, by the key's path."""
    found, path, comment = {}, [], []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match and match["comment"] is not None:
            comment.append(match["comment"].strip())
            continue
        if match and match["key"]:
            path[len(match["indent"]) // 2:] = [match["key"]]
            if comment:
                found[".".join(path)] = " ".join(comment)
        comment = []
    return found


def leaves(values: dict[str, Any], said: dict[str, str], above: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that has a meaning of its own: what is said of a map is said of it as a whole."""
    for key, value in values.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and value and name not in said:
            yield from leaves(value, said, f"{name}.")
        else:
            yield name, value
