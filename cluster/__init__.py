"""The cluster in the process: API, controllers and kubelets, as plain synchronous code."""

if __name__ == "cluster":
    raise ModuleNotFoundError("'cluster' is imported as pumice.cluster", name=__name__)
