# A named pipe between a thread and the main program.
import os
import stat
import threading

os.mkfifo("pipe")
assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def writer():
    with open("pipe", "w") as f:
        for i in range(3):
            f.write(f"message {i}\n")


thread = threading.Thread(target=writer)
thread.start()
with open("pipe") as f:
    for line in f:
        print(line.strip())
thread.join()
