"""The paper's experiments with polysift, and the methods that it compares with.

``studies`` are its simulations and theorems, ``comparisons`` its tables on real data, ``rivals``
its competitors as scikit-learn classifiers; ``app`` is the command ``polysift reproduce``.
"""

__version__ = "0.3.0.dev0"
