"""A fitted model outside of Python: the model file, and ONNX.

``model_file`` saves and loads models: ``plain`` turns their parameters and attributes into JSON and
arrays, ``archive`` is the container of both, and ``validation`` checks that the attributes make a
model. ``onnx`` exports a classifier, built as an ``onnx_graph`` of ``onnx_inputs``.
"""
