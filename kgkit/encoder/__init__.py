"""Encoders: any Hugging Face model that makes vectors of text, found by path, installed package or hub id.

The one place that loads transformer weights: by OpenVINO, to read texts on a processor; by torch otherwise,
which is imported then.
"""

from kgkit.encoder.device import pick_device
from kgkit.encoder.encoder import Encoded, Encoder

__all__ = ["Encoded", "Encoder", "pick_device"]
