"""A text file, plain or compressed, as blocks of whole lines."""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

import numpy as np

from ultr.errors import DataError

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 24
_COMPRESSED_BYTES = 1 << 18
_NEWLINE = ord("\n")


def read_blocks(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """The number of the first line of each block, and the block, which always ends with a line end.

    The first bytes of the file, not its name, tell whether it is compressed with gzip, bzip2 or xz.
    """
    line = 1
    try:
        with Path(path).open("rb") as stream:
            for block in _whole_lines(_pieces(stream)):
                yield line, block.removeprefix(codecs.BOM_UTF8) if line == 1 else block
                # `bytes.count` takes three times as long.
                line += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE))
    except OSError as error:
        if error.errno is None:  # how bz2 reports a broken stream
            raise _damaged(path, line) from error
        raise DataError(f"cannot read {path}: {error.strerror}; give the path of a readable file") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise _damaged(path, line) from error
    except _LongLineError as error:
        raise DataError(
            f"{path}, line {line + error.lines}: the line is longer than {LONGEST_LINE >> 20} MiB; "
            "check that this is text with one document a line"
        ) from error


class _LongLineError(Exception):
    """A line that does not end within `LONGEST_LINE` bytes, after so many other lines of its block."""

    def __init__(self, lines: int) -> None:
        super().__init__(lines)
        self.lines = lines


def _damaged(path: str | Path, line: int) -> DataError:
    return DataError(
        f"{path} is damaged or cut short: it cannot be decompressed beyond line {line}; fetch or copy it again"
    )


def _pieces(stream: BufferedReader) -> Iterator[bytes]:
    """The decompressed bytes, cut anywhere."""
    start = stream.peek(6)
    if start.startswith(b"\x1f\x8b"):
        yield from _gzip_pieces(stream)
        return
    with _decompressed(stream, start) as source:
        while piece := source.read(BLOCK_BYTES):
            yield piece


def _decompressed(stream: BufferedReader, start: bytes) -> BufferedReader | bz2.BZ2File | lzma.LZMAFile:
    if start.startswith(b"BZh"):
        return bz2.BZ2File(stream)
    if start.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(stream)
    return stream


def _gzip_pieces(stream: BufferedReader) -> Iterator[bytes]:
    # `gzip.open` reads 8 kB at a time, which takes 1.7 times as long on Python 3.11.
    decoder = zlib.decompressobj(wbits=31)
    data = stream.read(_COMPRESSED_BYTES)
    while data:
        yield decoder.decompress(data, BLOCK_BYTES)
        data = decoder.unconsumed_tail
        if decoder.eof:
            data = _next_member(decoder.unused_data, stream)
            if not data:
                return
            decoder = zlib.decompressobj(wbits=31)
        elif not data:
            data = stream.read(_COMPRESSED_BYTES)
    raise EOFError


def _next_member(unused: bytes, stream: BufferedReader) -> bytes:
    """The bytes that follow a gzip member, without the zeros that may pad it."""
    data = unused.lstrip(b"\0")
    while not data and (more := stream.read(_COMPRESSED_BYTES)):
        data = more.lstrip(b"\0")
    return data


def _whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The pieces, small ones joined, cut at line ends instead; a last line without one gains it."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        cut = piece.rfind(b"\n") + 1 if size > BLOCK_BYTES // 2 else 0
        if cut:
            yield b"".join([*rest, memoryview(piece)[:cut]])
            rest, size = [], len(piece) - cut
        rest.append(piece[cut:])
        if size > LONGEST_LINE:
            raise _LongLineError(sum(part.count(b"\n") for part in rest))
    if last := b"".join(rest):
        yield last if last.endswith(b"\n") else last + b"\n"
