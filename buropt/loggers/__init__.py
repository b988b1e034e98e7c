"""Where records go besides the files of a run: `logger=tensorboard`, `logger=mlflow`, or your own.

A logger of your own is any class with the three methods of `Logger`, named by `_target_` in a
configuration.
"""

from buropt.loggers.base import Guarded as Guarded
from buropt.loggers.base import Logger as Logger
from buropt.loggers.mlflow import MLflow as MLflow
from buropt.loggers.tensorboard import TensorBoard as TensorBoard

__all__ = ["Guarded", "Logger", "MLflow", "TensorBoard"]
