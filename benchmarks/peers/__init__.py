"""The peers, each in one file: what they build, and how they answer what kgkit answers."""
