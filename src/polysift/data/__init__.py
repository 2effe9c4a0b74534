"""Rows from anywhere: arrays, tables, files and folders, behind one ``DataSource``.

``source`` defines what a source is, and ``inputs`` makes one of what a user passes to an estimator.
``readers`` has ``open_data``: ``locations`` finds the files, ``formats`` has the table of formats,
and ``parquet``, ``csv_files``, ``libsvm``, ``numpy_files`` and ``arrow`` each open some.
"""
