"""A fitted model outside of Python: the model file, ONNX."""
