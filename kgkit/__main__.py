"""`python -m kgkit`: the command line, where `kgkit` is not on the path."""

from kgkit.commands import main

if __name__ == "__main__":
    main()
