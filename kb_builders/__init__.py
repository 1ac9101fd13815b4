"""The builders that come with kgkit: plugins, found by entry point like anyone's."""
