# Fifty threads that sleep at the same time.
import threading
import time

start = time.monotonic()
threads = [threading.Thread(target=time.sleep, args=(0.2,)) for _ in range(50)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(time.monotonic() - start < 5)
