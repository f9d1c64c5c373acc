# Fresh interpreters: spawn and forkserver.
import multiprocessing as mp
import os


def who(queue, parent):
    queue.put(os.getppid() != 0 and os.getpid() != parent)


if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = mp.get_context(method)
        queue = context.Queue()
        p = context.Process(target=who, args=(queue, os.getpid()))
        p.start()
        print(method, queue.get(timeout=30))
        p.join()
