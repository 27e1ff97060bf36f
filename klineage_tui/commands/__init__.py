"""The verbs of the command line, one module a family. Each module's COMMANDS maps a verb to a function
that adds its arguments to a parser and returns what runs it."""
