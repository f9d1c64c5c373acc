# Graphs, heaps, dynamic programming.
import heapq
from bisect import insort
from functools import lru_cache
from itertools import accumulate, groupby, permutations

graph = {"a": {"b": 7, "c": 3}, "b": {"d": 1}, "c": {"b": 2, "d": 8}, "d": {}}
distance, heap = {}, [(0, "a")]
while heap:
    d, node = heapq.heappop(heap)
    if node not in distance:
        distance[node] = d
        for other, cost in graph[node].items():
            heapq.heappush(heap, (d + cost, other))
print(distance)


@lru_cache(None)
def ways(n):
    return 1 if n == 0 else sum(ways(n - c) for c in (1, 2, 5) if n >= c)


print(ways(50), list(accumulate([1, 2, 3])), len(list(permutations("abcd"))))
print([(k, len(list(g))) for k, g in groupby("aaabbc")])
ordered = []
for n in (5, 1, 4):
    insort(ordered, n)
print(ordered)
