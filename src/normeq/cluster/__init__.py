"""Zarr images denoised on a dask cluster: chunk by chunk, on workers that share a file system.

`connection` finds or starts the cluster, `layout` cuts an image into tasks, `tasks` is what a
worker does, and `runner` hands out the tasks and records what is finished.
"""
