# A pool of threads, results in order and as they come.
import time
from concurrent.futures import ThreadPoolExecutor, as_completed


def square(n):
    time.sleep(0.01)
    return n * n


with ThreadPoolExecutor(max_workers=8) as pool:
    print(list(pool.map(square, range(10))))
    futures = {pool.submit(square, n): n for n in range(5)}
    print(sorted((futures[f], f.result()) for f in as_completed(futures)))
    failing = pool.submit(lambda: 1 / 0)
    print(repr(failing.exception()))
