# A counter with a lock, a semaphore, a barrier.
import threading

count, lock, barrier, inside, most = 0, threading.Lock(), threading.Barrier(4), 0, 0
gate = threading.BoundedSemaphore(2)


def work():
    global count, inside, most
    barrier.wait(10)
    for _ in range(1000):
        with lock:
            count += 1
    with gate:
        with lock:
            inside += 1
            most = max(most, inside)
        with lock:
            inside -= 1


threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(count, most <= 2, threading.active_count())
