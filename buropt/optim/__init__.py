"""Optimization methods, one small file each. `base.py` says what they share."""

from buropt.optim.adagrad import AdaGrad
from buropt.optim.adam import Adam, AdamW
from buropt.optim.adgd import AdGD
from buropt.optim.armijo import Armijo
from buropt.optim.base import FixedStep, Optimizer
from buropt.optim.cubic_newton import CubicNewton
from buropt.optim.dcgd import DCGD
from buropt.optim.diana import Diana
from buropt.optim.ef21 import EF21 as EF21
from buropt.optim.gd import GD
from buropt.optim.heavy_ball import HeavyBall
from buropt.optim.katyusha import Katyusha
from buropt.optim.lkatyusha import LKatyusha
from buropt.optim.lsvrg import LSVRG
from buropt.optim.marina import Marina
from buropt.optim.momentum import Momentum, NesterovSGD
from buropt.optim.nesterov import Nesterov
from buropt.optim.newton import Newton
from buropt.optim.page import PAGE
from buropt.optim.polyak import PolyakStep
from buropt.optim.rcd import RCD
from buropt.optim.rmsprop import RMSProp
from buropt.optim.sag import SAG
from buropt.optim.saga import SAGA
from buropt.optim.sarah import SARAH
from buropt.optim.sega import SEGA
from buropt.optim.sgd import SGD
from buropt.optim.spider import Spider, SpiderBoost
from buropt.optim.sps import SPS
from buropt.optim.svrg import SVRG
from buropt.optim.wolfe import Wolfe

__all__ = [
    "DCGD",
    "EF21",
    "GD",
    "LSVRG",
    "PAGE",
    "RCD",
    "SAG",
    "SAGA",
    "SARAH",
    "SEGA",
    "SGD",
    "SPS",
    "SVRG",
    "AdGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Armijo",
    "CubicNewton",
    "Diana",
    "FixedStep",
    "HeavyBall",
    "Katyusha",
    "LKatyusha",
    "Marina",
    "Momentum",
    "Nesterov",
    "NesterovSGD",
    "Newton",
    "Optimizer",
    "PolyakStep",
    "RMSProp",
    "Spider",
    "SpiderBoost",
    "Wolfe",
]
