# Processes with a queue, a pipe, an event and a lock.
import multiprocessing as mp


def worker(tasks, results, start, lock):
    start.wait()
    while (n := tasks.get()) is not None:
        with lock:
            results.put((n, n * n))


if __name__ == "__main__":
    tasks, results, start, lock = mp.Queue(), mp.Queue(), mp.Event(), mp.Lock()
    workers = [mp.Process(target=worker, args=(tasks, results, start, lock)) for _ in range(3)]
    for w in workers:
        w.start()
    for n in range(9):
        tasks.put(n)
    for _ in workers:
        tasks.put(None)
    start.set()
    print(sorted(results.get(timeout=20) for _ in range(9)))
    for w in workers:
        w.join()
    print([w.exitcode for w in workers])
    ours, theirs = mp.Pipe()
    p = mp.Process(target=lambda c: c.send(c.recv() + 1), args=(theirs,))
    p.start()
    ours.send(41)
    print(ours.recv())
    p.join()
