"""Agents at the edges of what worker processes allow."""

from tests.engine.isolated_functions import MB, filled


async def hungry(ctx, number, size_mb):
    return len(filled(size_mb * MB))
