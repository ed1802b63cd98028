"""Trials on the workers of a Dask cluster. Only `engine.dask.engine` and `engine.dask.task` need Dask installed."""
