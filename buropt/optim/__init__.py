"""Optimization methods, one small file each. `base.py` says what they share."""

from buropt.optim.adagrad import AdaGrad
from buropt.optim.adam import Adam, AdamW
from buropt.optim.adgd import AdGD
from buropt.optim.adiana import ADiana
from buropt.optim.armijo import Armijo
from buropt.optim.base import FixedStep, Optimizer
from buropt.optim.cofig import COFIG
from buropt.optim.cubic_newton import CubicNewton
from buropt.optim.dasha import DASHA
from buropt.optim.dasha_mvr import DASHAMVR
from buropt.optim.dasha_page import DASHAPAGE
from buropt.optim.dcgd import DCGD
from buropt.optim.diana import Diana
from buropt.optim.ef14 import EF14
from buropt.optim.ef21 import EF21
from buropt.optim.ef21_bc import EF21BC
from buropt.optim.ef21_hb import EF21HB
from buropt.optim.ef21_page import EF21PAGE
from buropt.optim.ef21_pp import EF21PP
from buropt.optim.ef21_sgdm import EF21SGD, EF21SGDM
from buropt.optim.ef21_w import EF21W
from buropt.optim.fedavg import FedAvg
from buropt.optim.fednl import FedNL
from buropt.optim.fednl_pp import FedNLPP
from buropt.optim.frecon import FRECON
from buropt.optim.gd import GD
from buropt.optim.heavy_ball import HeavyBall
from buropt.optim.katyusha import Katyusha
from buropt.optim.lag import CLAG, LAG
from buropt.optim.lkatyusha import LKatyusha
from buropt.optim.lsvrg import LSVRG
from buropt.optim.marina import Marina
from buropt.optim.mig import MiG
from buropt.optim.momentum import Momentum, NesterovSGD
from buropt.optim.nesterov import Nesterov
from buropt.optim.newton import Newton
from buropt.optim.page import PAGE
from buropt.optim.polyak import PolyakStep
from buropt.optim.pp_marina import PPMarina
from buropt.optim.proxskip import ProxSkip
from buropt.optim.rcd import RCD
from buropt.optim.rmsprop import RMSProp
from buropt.optim.sag import SAG
from buropt.optim.saga import SAGA
from buropt.optim.sarah import SARAH
from buropt.optim.scaffold import Scaffold
from buropt.optim.scipy import SciPy
from buropt.optim.sega import SEGA
from buropt.optim.sgd import SGD
from buropt.optim.spider import Spider, SpiderBoost
from buropt.optim.sps import SPS
from buropt.optim.svrg import SVRG
from buropt.optim.three_pc import ThreePCv1, ThreePCv2, ThreePCv3, ThreePCv4, ThreePCv5
from buropt.optim.vr_diana import VRDiana
from buropt.optim.vr_marina import VRMarina
from buropt.optim.wolfe import Wolfe

__all__ = [
    "CLAG",
    "COFIG",
    "DASHA",
    "DASHAMVR",
    "DASHAPAGE",
    "DCGD",
    "EF14",
    "EF21",
    "EF21BC",
    "EF21HB",
    "EF21PAGE",
    "EF21PP",
    "EF21SGD",
    "EF21SGDM",
    "EF21W",
    "FRECON",
    "GD",
    "LAG",
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
    "ADiana",
    "AdGD",
    "AdaGrad",
    "Adam",
    "AdamW",
    "Armijo",
    "CubicNewton",
    "Diana",
    "FedAvg",
    "FedNL",
    "FedNLPP",
    "FixedStep",
    "HeavyBall",
    "Katyusha",
    "LKatyusha",
    "Marina",
    "MiG",
    "Momentum",
    "Nesterov",
    "NesterovSGD",
    "Newton",
    "Optimizer",
    "PPMarina",
    "PolyakStep",
    "ProxSkip",
    "RMSProp",
    "Scaffold",
    "SciPy",
    "Spider",
    "SpiderBoost",
    "ThreePCv1",
    "ThreePCv2",
    "ThreePCv3",
    "ThreePCv4",
    "ThreePCv5",
    "VRDiana",
    "VRMarina",
    "Wolfe",
]
