"""Build all rankers and print the spec of each: `make models`."""

from __future__ import annotations

import sys

from shaketable.core.errors import ShaketableError
from weights import MODELS
from weights.convert import PREFIXES, build_model


def main() -> int:
    """Build each model, print its spec and return the exit code."""
    for model in MODELS.values():
        try:
            folder = build_model(model)
        except ShaketableError as error:
            print(f"{model.name}: {error}", file=sys.stderr)
            return 2
        print(f"{model.name} (int8 weights): --ranker {PREFIXES[model.type]}:{folder}, or onnx:{folder}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
