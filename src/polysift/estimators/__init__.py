"""The public estimators, in the manner of scikit-learn, and prediction.

``classifier`` has ``FPCClassifier``, ``search`` ``FPCClassifierCV`` and ``transformer``
``PolynomialKernelMap``. ``fitted`` goes from the result of a fit to fitted attributes and back, and
calls scikit-learn's callbacks; ``prediction`` computes scores shard by shard, and
``prediction_files`` writes predictions to a file or a folder.
"""
