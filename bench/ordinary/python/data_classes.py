# Dataclasses, enums, protocols, pattern matching.
from dataclasses import asdict, dataclass, field, replace
from enum import Enum, auto
from typing import Protocol


class Shape(Protocol):
    def area(self) -> float: ...


class Colour(Enum):
    RED = auto()
    BLUE = auto()


@dataclass(frozen=True, order=True)
class Square:
    side: float
    colour: Colour = field(default=Colour.RED, compare=False)

    def area(self) -> float:
        return self.side ** 2


def describe(thing):
    match thing:
        case Square(side=s) if s > 2:
            return f"big square {s}"
        case {"kind": kind, **rest}:
            return f"{kind} {rest}"
        case [first, *_]:
            return f"list from {first}"
        case _:
            return "?"


print([describe(x) for x in (Square(3), {"kind": "map", "a": 1}, [1, 2], 5)])
print(asdict(replace(Square(1), side=2)), sorted([Square(2), Square(1)])[0].area(), Colour["BLUE"])
