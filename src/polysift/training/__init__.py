"""One fit, from checked parameters to a result: job, plan, preparation, folds, calibration."""
