# Numbers without libraries: a life, a sieve, a matrix, a simulation.
import math
import random


def life(cells):
    near = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    near[x + dx, y + dy] = near.get((x + dx, y + dy), 0) + 1
    return {c for c, n in near.items() if n == 3 or (n == 2 and c in cells)}


cells = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
for _ in range(40):
    cells = life(cells)
print(sorted(cells))
sieve = bytearray([1]) * 20000
for i in range(2, 142):
    if sieve[i]:
        sieve[i * i::i] = bytes(len(sieve[i * i::i]))
print(sum(sieve) - 2, math.comb(40, 20), math.isqrt(10 ** 20))
random.seed(7)
print(round(4 * sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(20000)) / 20000, 2))
