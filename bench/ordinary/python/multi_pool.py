# multiprocessing.Pool.
from multiprocessing import Pool, cpu_count


def cube(n):
    return n ** 3


def add(a, b):
    return a + b


if __name__ == "__main__":
    assert cpu_count() >= 1
    with Pool(4) as pool:
        print(pool.map(cube, range(10)))
        print(pool.starmap(add, [(1, 2), (3, 4)]))
        print(sorted(pool.imap_unordered(cube, range(5))), pool.apply_async(cube, (7,)).get(20))
