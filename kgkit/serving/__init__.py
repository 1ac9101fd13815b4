"""The service: knowledge bases and their linkers behind HTTP.

`settings` says what is served and how much of it, `service` answers, `app` puts routers before it.
"""
