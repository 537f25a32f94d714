"""Recall: choose the notes that help with a prompt, at most two, or none."""

import os

# Before numpy is loaded. OpenBLAS lets its threads spin until all are done: on a machine whose cores are busy a query then takes
# a second instead of ten milliseconds, and an idle one gains three. A process that has set it knows better.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
