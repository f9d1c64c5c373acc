# ProcessPoolExecutor: primes, and a worker that dies.
import os
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))


def die():
    os._exit(1)


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print([n for n, p in zip(range(50), pool.map(is_prime, range(50), chunksize=10)) if p])
    with ProcessPoolExecutor(1) as pool:
        try:
            pool.submit(die).result(20)
        except BrokenProcessPool:
            print("a worker died")
