# Producers and consumers with a queue.
import queue
import threading

tasks, done = queue.Queue(maxsize=4), []


def consumer():
    while (item := tasks.get()) is not None:
        done.append(item * 2)
        tasks.task_done()
    tasks.task_done()


workers = [threading.Thread(target=consumer) for _ in range(3)]
for w in workers:
    w.start()
for i in range(20):
    tasks.put(i)
for _ in workers:
    tasks.put(None)
tasks.join()
for w in workers:
    w.join()
print(sorted(done))
