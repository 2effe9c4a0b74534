"""Rows from anywhere: arrays, tables, files and folders, behind one ``DataSource``.

``source`` defines what a source is, and ``inputs`` makes one of what a user passes to an estimator.
``readers`` has ``open_data``: ``locations`` finds the files, ``formats`` has the table of formats,
and ``parquet``, ``csv_files``, ``libsvm``, ``numpy_files``, ``arrow_files``, ``orc``,
``json_lines``, ``excel`` and ``databases`` each open some. ``kinds`` says how a value of any kind
is a number; ``words`` and ``written_numbers`` read text, ``memory_columns`` and ``tables`` what is
in memory, and
``text_columns`` finds what the columns of a text file hold while it is parsed.
"""
