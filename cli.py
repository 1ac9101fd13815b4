"""Run kgkit from a checkout: `python cli.py build-kb wordnet`.

Never installed; the installed command is called `kgkit`. Builders are found by
their entry points, so `pip install -e .` comes first: `make demo` does that in `.venv`.
"""

from kgkit.commands import main

if __name__ == "__main__":
    main()
