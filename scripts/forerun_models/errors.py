"""The one exception that the scripts show to their user."""


class SetupError(Exception):
    """The environment's or the user's fault; its text is one line that says what to do."""
