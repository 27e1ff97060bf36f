"""The one exception that users see: a clear sentence with a way out."""


class KlineageError(Exception):
    """Something the user can act on. The message says what, where, and what to do, in one line."""
