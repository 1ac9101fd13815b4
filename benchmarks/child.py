"""The measured process: `python -m benchmarks.child MODULE:FUNCTION JSON`.

Calls the function with the arguments and writes what it returns, as JSON, to the standard output. What
the libraries print goes to the standard error.
"""

import importlib
import json
import os
import sys


def main() -> None:
    """Run the one function that the command line names."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    module, _, function = sys.argv[1].partition(":")
    result = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    json.dump(result, answers)
    answers.close()


if __name__ == "__main__":
    main()
