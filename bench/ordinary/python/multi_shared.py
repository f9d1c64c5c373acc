# Shared values, arrays, memory and a semaphore.
import multiprocessing as mp
from multiprocessing import shared_memory


def count(value, array, name):
    for i in range(100):
        with value.get_lock():
            value.value += 1
        array[i % len(array)] = i
    block = shared_memory.SharedMemory(name=name)
    block.buf[0] += 1
    block.close()


if __name__ == "__main__":
    value, array = mp.Value("i", 0), mp.Array("d", 10)
    block = shared_memory.SharedMemory(create=True, size=4096)
    block.buf[0] = 5
    workers = [mp.Process(target=count, args=(value, array, block.name)) for _ in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    print(value.value, list(array)[:3], block.buf[0] in (6, 7))
    block.close()
    block.unlink()
    s = mp.Semaphore(1)
    print(s.acquire(timeout=1), s.acquire(timeout=0.01))
