"""Named, versioned encoders: a VIEW becomes an array.

Every encoder writes small whole numbers into one flat row; its `Layout` says where each field
lies, prints the documentation and drives the offsets. Seats are relative: seat 0 of a field is the
viewer, 1 the next clockwise; unused seats are zero. A released encoder never changes.
"""

from valety_env.observations.bits import BITS, put, spread, spread_word
from valety_env.observations.encode import (
    FLAT_SIZE_2,
    FLAT_SIZE_7,
    encode,
    encode_view,
    encode_views,
    flat_bits,
    planes_bits,
)
from valety_env.observations.layouts import (
    ENCODERS,
    FLAT,
    PLANES,
    TOKENS,
    Encoder,
    Field,
    Layout,
    make_encoder,
    seats_of,
)

__all__ = [
    "BITS",
    "ENCODERS",
    "FLAT",
    "FLAT_SIZE_2",
    "FLAT_SIZE_7",
    "PLANES",
    "TOKENS",
    "Encoder",
    "Field",
    "Layout",
    "encode",
    "encode_view",
    "encode_views",
    "flat_bits",
    "make_encoder",
    "planes_bits",
    "put",
    "seats_of",
    "spread",
    "spread_word",
]
