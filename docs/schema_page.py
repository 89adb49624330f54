"""Write docs/results-schema.md from the JSON Schemas of the package: `make readme`.

The schemas hold the type, the meaning and an example of each key, so that the page cannot differ from them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCHEMAS = {name: ROOT / "src" / "shaketable" / "report" / f"{name}.schema.json" for name in ("results", "comparison")}
PAGE = ROOT / "docs" / "results-schema.md"
INTRODUCTION = """# The schema of results.json

Every audit writes `results.json`, and `--json FILE` writes the same data. This page lists all keys. The first key is
the name and version of the schema. The version changes whenever a key changes or disappears
([releases.md](releases.md)).

`docs/schema_page.py` writes this page from two JSON Schemas of the package, `report/results.schema.json` and
`report/comparison.schema.json`. You can check a file with the package jsonschema, which the extra `report` installs:

```python
import json
from importlib.resources import files

import jsonschema
import shaketable as st

schema = json.loads((files("shaketable.report") / "results.schema.json").read_text(encoding="utf-8"))
jsonschema.validate(st.audit("sample", ["bm25", "ql"], "risk", max_queries=5).to_dict(), schema)
```

`st.read_audit("shaketable-audit")` reads a saved audit as Python objects.
"""
TYPE_NAMES = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}


def main() -> None:
    """Write the page."""
    PAGE.write_text(render_page(), encoding="utf-8")


def render_page() -> str:
    """Return the page: a section for each schema, with a table for each object."""
    parts = [INTRODUCTION]
    for path in SCHEMAS.values():
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts += [f"## {schema['title']}", schema["description"], *render_table(schema)]
        for name, definition in schema["$defs"].items():
            parts += [f"### {name}", definition["description"], *render_table(definition)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def render_table(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of an object's keys; nothing for another type."""
    if "properties" in definition:
        rows = ["| key | type | meaning | example |", "|---|---|---|---|"]
        for key, about in definition["properties"].items():
            optional = "" if key in definition["required"] else " (optional)"
            example = f"`{json.dumps(about['examples'][0], ensure_ascii=False)}`" if "examples" in about else ""
            rows.append(f"| `{key}` | {describe_type(about)}{optional} | {about['description']} | {example} |")
        yield "\n".join(rows)


def describe_type(about: Mapping[str, Any]) -> str:
    """Return the type of a value in words.

    >>> describe_type({"type": "array", "items": {"$ref": "#/$defs/number"}})
    'list of [number](#number)'
    """
    if "$ref" in about:
        name = about["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in about or "enum" in about:
        return " or ".join(f'`"{value}"`' for value in about.get("enum", [about.get("const")]))
    if "anyOf" in about:
        return " or ".join(map(describe_type, about["anyOf"]))
    if about["type"] == "array":
        return f"list of {describe_type(about['items'])}"
    if about["type"] == "object":
        return f"mapping to {describe_type(about['additionalProperties'])}"
    kinds = about["type"] if isinstance(about["type"], list) else [about["type"]]
    return " or ".join(TYPE_NAMES[kind] for kind in kinds) + (" (a date)" if about.get("format") == "date" else "")


if __name__ == "__main__":
    main()
