# POSIX semaphores and shared memory, System V memory and messages, through the C library.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
name = b"/pale-ordinary-%d" % os.getpid()
libc.sem_open.restype = ctypes.c_void_p
sem = libc.sem_open(name, os.O_CREAT, 0o600, 1)
assert sem, os.strerror(ctypes.get_errno())
print(libc.sem_wait(ctypes.c_void_p(sem)), libc.sem_trywait(ctypes.c_void_p(sem)), libc.sem_unlink(name))
segment = libc.shmget(0, 4096, 0o1600)
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat(segment, None, 0)
ctypes.memmove(address, b"shared", 7)
print(ctypes.string_at(address), libc.shmdt(ctypes.c_void_p(address)), libc.shmctl(segment, 0, None))
queue = libc.msgget(0, 0o1600)
print(queue >= 0, libc.msgctl(queue, 0, None))
semaphores = libc.semget(0, 2, 0o1600)
print(semaphores >= 0, libc.semctl(semaphores, 0, 0))
