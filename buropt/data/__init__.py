"""Data: LIBSVM files, downloads, data of scikit-learn, synthetic data, splits among workers."""

from buropt.data.bundled import breast_cancer as breast_cancer
from buropt.data.bundled import digits as digits
from buropt.data.dataset import Dataset as Dataset
from buropt.data.download import fetch as fetch
from buropt.data.download import fetch_libsvm as fetch_libsvm
from buropt.data.libsvm import load_libsvm as load_libsvm
from buropt.data.libsvm import load_libsvm_many as load_libsvm_many
from buropt.data.split import contiguous as contiguous
from buropt.data.split import dirichlet as dirichlet
from buropt.data.split import shuffled as shuffled
from buropt.data.split import sorted_by_label as sorted_by_label
from buropt.data.split import split_workers as split_workers
from buropt.data.synthetic import Quadratics as Quadratics
from buropt.data.synthetic import quadratics as quadratics
from buropt.data.synthetic import synthetic_classification as synthetic_classification
