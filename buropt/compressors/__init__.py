"""Compressors: what a worker sends instead of a vector, and how many bits it takes.

These are thin over the compiled core, which compresses the vectors of all the workers in one call.
The accounting is the same everywhere: a message costs b bits for every value (32 or 64) and
ceil(log2 d) bits for every index. With a shared seed the receiver repeats the draw and indices cost
nothing; the seed itself, sent once for a whole run, is not counted. `Message.bits` is counted from
the messages made, `Compressor.bits` is the formula, and `CompiledCompressor.encode` the bytes: the
bits of a message from the lowest of the first byte up, and zeros to fill the last byte.

A NaN is never hidden but by those that do not look at values (RandK and its like) and by `Sign`: it
is ranked above infinity, or spoils the whole message.

>>> message = TopK(2).compress(np.array([[3.0, -3.0, 3.0, 1.0]]), Key(seed=0))
>>> message.values
array([[ 3., -3.,  0.,  0.]])
>>> message.bits
array([132])
"""

from buropt.compressors.base import (
    Choice,
    Chooser,
    CompiledCompressor,
    Compressor,
    Message,
    Quantizer,
    Selector,
)
from buropt.compressors.bernoulli import Bernoulli
from buropt.compressors.block_topk import BlockTopK
from buropt.compressors.composition import Composition
from buropt.compressors.identity import Identity
from buropt.compressors.lowrank import LowRank
from buropt.compressors.natural import NaturalCompression
from buropt.compressors.natural_dithering import NaturalDithering
from buropt.compressors.permk import PermK
from buropt.compressors.powersgd import PowerSGD
from buropt.compressors.randk import RandK
from buropt.compressors.random_dithering import RandomDithering
from buropt.compressors.randseqk import RandSeqK
from buropt.compressors.rankr import RankR
from buropt.compressors.scaled import Scaled
from buropt.compressors.scaled_sign import ScaledSign
from buropt.compressors.sign import Sign
from buropt.compressors.terngrad import TernGrad
from buropt.compressors.topk import TopK
from buropt.compressors.toplek import TopLEK

__all__ = [
    "Bernoulli",
    "BlockTopK",
    "Choice",
    "Chooser",
    "CompiledCompressor",
    "Composition",
    "Compressor",
    "Identity",
    "LowRank",
    "Message",
    "NaturalCompression",
    "NaturalDithering",
    "PermK",
    "PowerSGD",
    "Quantizer",
    "RandK",
    "RandSeqK",
    "RandomDithering",
    "RankR",
    "Scaled",
    "ScaledSign",
    "Selector",
    "Sign",
    "TernGrad",
    "TopK",
    "TopLEK",
]
