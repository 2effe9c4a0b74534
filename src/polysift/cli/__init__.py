"""The command line: parses and calls. What takes time to import is imported by the commands."""
