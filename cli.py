"""Run kgkit from a checkout: `python cli.py build-kb wordnet`.

Never installed; the installed command is called `kgkit`. The packages that it
needs must be there all the same: `make demo` puts them into `.venv`.
"""

from kgkit.commands import main

if __name__ == "__main__":
    main()
