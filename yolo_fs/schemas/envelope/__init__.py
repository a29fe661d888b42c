"""The envelope in which product agents hand work to each other. See
docs/sources.md#document-003.
"""

from yolo_fs.schemas.envelope.envelope import PAYLOADS, Envelope, payload_shape, read_envelope

__all__ = ["PAYLOADS", "Envelope", "payload_shape", "read_envelope"]
