# A manager's dictionary and list.
from multiprocessing import Manager, Process


def fill(d, l, i):
    d[i] = i * 10
    l.append(i)


if __name__ == "__main__":
    with Manager() as manager:
        d, l = manager.dict(), manager.list()
        workers = [Process(target=fill, args=(d, l, i)) for i in range(4)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        print(dict(sorted(d.items())), sorted(l))
