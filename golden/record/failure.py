"""The one exception that a recording ends with when something is wrong and the reader can act on it."""


class RecordError(Exception):
    """What is wrong and where; record.py prints it alone, without a traceback, and exits with 2."""
