"""Pictures and documents for tests: real ones, of any size, made here."""

import os
import struct
import zlib
from pathlib import Path


def png(path: Path, *, filler_bytes: int = 0, width: int = 4, height: int = 4, shade: int = 0) -> Path:
    """A PNG file; `filler_bytes` more than its pixels take, in a comment. `shade` makes it another picture."""
    rows = b"".join(b"\0" + bytes([shade]) * 3 * width for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    comment = b"Comment\0" + b"x" * filler_bytes
    parts = ((b"IHDR", header), (b"tEXt", comment), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_part(*part) for part in parts))
    return path


def _part(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def wav(path: Path) -> Path:
    """A second of silence, nearly."""
    sound = b"\0" * 800
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(sound), b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8,
                       b"data", len(sound))  # fmt: skip
    path.write_bytes(head + sound)
    return path


def pdf(path: Path, *texts: str) -> Path:
    """A PDF with a page for each text."""
    streams = [f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode() for text in texts]
    return pdf_of_streams(path, [(b"", stream) for stream in streams])


def pdf_bomb(path: Path, *, unpacked_bytes: int) -> Path:
    """A PDF whose one page is small on disk and large when it is unpacked."""
    packer = zlib.compressobj(9)
    block = b"(a) Tj\n" * 100_000
    packed = b"".join(packer.compress(block) for _ in range(unpacked_bytes // len(block) + 1)) + packer.flush()
    return pdf_of_streams(path, [(b"/Filter /FlateDecode ", packed)])


def pdf_of_streams(path: Path, streams: list[tuple[bytes, bytes]]) -> Path:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % len(streams),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, (filters, stream) in enumerate(streams):
        page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R" % (5 + 2 * number)
        objects.append(page + b" /Resources << /Font << /F1 3 0 R >> >> >>")
        objects.append(b"<< %b/Length %d >>\nstream\n" % (filters, len(stream)) + stream + b"\nendstream")
    body, offsets = b"%PDF-1.4\n", list[int]()
    for number, written in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n" % number + written + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(body))
    path.write_bytes(body + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end)
    return path


def noise(path: Path, *, width: int, height: int) -> Path:
    """A PNG file whose pixels cannot be compressed."""
    row_bytes = 3 * width
    noisy = os.urandom(row_bytes * height)
    rows = b"".join(b"\0" + noisy[at : at + row_bytes] for at in range(0, len(noisy), row_bytes))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_part(*part) for part in parts))
    return path


def picture_bomb(path: Path, *, side: int) -> Path:
    """A PNG file of so many pixels a side, small on disk."""
    packer = zlib.compressobj(9)
    row = b"\0" * (side // 8 + 1)
    packed = b"".join(packer.compress(row * 100) for _ in range(side // 100)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", packed), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(_part(*part) for part in parts))
    return path
