# Pickle and shelve with a class of one's own.
import pickle
import shelve
from dataclasses import dataclass, field


@dataclass
class Person:
    name: str
    born: int
    tags: list = field(default_factory=list)


people = [Person("Ada", 1815, ["math"]), Person("Grace", 1906)]
with open("people.pickle", "wb") as f:
    pickle.dump(people, f, protocol=pickle.HIGHEST_PROTOCOL)
with open("people.pickle", "rb") as f:
    print(pickle.load(f) == people)
with shelve.open("shelf") as shelf:
    shelf["ada"] = people[0]
with shelve.open("shelf") as shelf:
    print(dict(shelf))
