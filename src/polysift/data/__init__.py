"""Rows from anywhere: arrays, tables, files and folders, behind one ``DataSource``.

``source`` says what a source is, ``inputs`` turns what a user passes into one, ``readers`` has
``open_data``; the other modules each read one kind of file.
"""
