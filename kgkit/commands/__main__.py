"""`python -m kgkit.commands`."""

from kgkit.commands import main

main()
