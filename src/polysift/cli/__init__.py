"""The command line: parses options and calls the library.

``app`` lists the commands: ``train`` has fit and tune, ``models`` those that use a model file,
``demo`` the demo, ``plugins`` those of other distributions. What takes time to import is imported
by the commands.
"""
