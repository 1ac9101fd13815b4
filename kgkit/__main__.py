"""Run the command line as `python -m kgkit`."""

from kgkit.commands import main

if __name__ == "__main__":
    main()
