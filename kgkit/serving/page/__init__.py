"""The page at `/`: rendered on the server, every view an address, without a script if need be."""

from kgkit.serving.page.views import error_page, router

__all__ = ["error_page", "router"]
