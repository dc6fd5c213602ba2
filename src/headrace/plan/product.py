"""Turns ordinals into (iteration, agent, scenario, model) and back, by arithmetic. A plan grows without moving one.

A plan is a row of boxes. The first box is the whole product as it was first run; each growth (more iterations, more
agents, more scenarios) appends the box of its new interviews, so an ordinal once given never moves. Within a box the
iteration is the slowest digit and the model the fastest: the first few interviews meet every model.
"""

from __future__ import annotations

from bisect import bisect_right
from math import prod
from typing import NamedTuple

import msgspec


class Coordinates(NamedTuple):
    """Where an interview stands in the plan: its position in each list."""

    iteration: int
    agent: int
    scenario: int
    model: int


class Box(NamedTuple):
    """The interviews from `low` up to, not including, `high`, in every dimension."""

    low: Coordinates
    high: Coordinates

    @property
    def sides(self) -> tuple[int, int, int, int]:
        (i0, a0, s0, m0), (i1, a1, s1, m1) = self.low, self.high
        return i1 - i0, a1 - a0, s1 - s0, m1 - m0

    @property
    def size(self) -> int:
        return prod(self.sides)


class Plan(msgspec.Struct, frozen=True):
    """`shape` is the number of iterations, agents, scenarios and models that all boxes together cover."""

    shape: Coordinates
    boxes: tuple[Box, ...]
    bases: tuple[int, ...]
    _sides: tuple[tuple[int, int, int, int], ...]

    @classmethod
    def of(cls, shape: Coordinates) -> Plan:
        return cls._from_boxes(shape, (Box(Coordinates(0, 0, 0, 0), shape),))

    @classmethod
    def from_boxes(cls, boxes: tuple[Box, ...]) -> Plan:
        return cls._from_boxes(Coordinates(*(max(box.high[axis] for box in boxes) for axis in range(4))), boxes)

    @classmethod
    def _from_boxes(cls, shape: Coordinates, boxes: tuple[Box, ...]) -> Plan:
        bases = [0]
        for box in boxes:
            bases.append(bases[-1] + box.size)
        return cls(shape, boxes, tuple(bases), tuple(box.sides for box in boxes))

    @property
    def size(self) -> int:
        """How many interviews; `len` stops at 63 bits."""
        return self.bases[-1]

    def __len__(self) -> int:
        return self.bases[-1]

    def coordinates(self, ordinal: int) -> Coordinates:
        """Return where the interview with this ordinal stands in each list."""
        if not 0 <= ordinal < self.bases[-1]:
            raise IndexError(f"ordinal {ordinal} is outside a plan of {self.bases[-1]}")
        number = bisect_right(self.bases, ordinal) - 1
        low, sides = self.boxes[number].low, self._sides[number]
        rest, model = divmod(ordinal - self.bases[number], sides[3])
        rest, scenario = divmod(rest, sides[2])
        iteration, agent = divmod(rest, sides[1])
        return Coordinates(low[0] + iteration, low[1] + agent, low[2] + scenario, low[3] + model)

    def ordinal(self, at: Coordinates) -> int:
        """The ordinal of an interview."""
        for base, (low, high) in zip(self.bases, self.boxes, strict=False):
            if all(low[axis] <= at[axis] < high[axis] for axis in range(4)):
                sides = [high[axis] - low[axis] for axis in range(4)]
                i, a, s, m = (at[axis] - low[axis] for axis in range(4))
                return base + ((i * sides[1] + a) * sides[2] + s) * sides[3] + m
        raise IndexError(f"{at} is outside a plan of shape {self.shape}")

    def grown(self, shape: Coordinates) -> Plan:
        """This plan and the interviews that `shape` adds, appended axis by axis: agents, scenarios, iterations, models.

        Models are added by merging run files alone.
        """
        boxes, covered = list(self.boxes), list(self.shape)
        for axis in (1, 2, 0, 3):
            if shape[axis] > covered[axis]:
                low, high = [0, 0, 0, 0], list(covered)
                low[axis], high[axis] = covered[axis], shape[axis]
                boxes.append(Box(Coordinates(*low), Coordinates(*high)))
                covered[axis] = shape[axis]
        return self._from_boxes(Coordinates(*covered), tuple(boxes))
