# The C library through ctypes: qsort with a callback, a structure, errno.
import ctypes
import ctypes.util
import errno

libc = ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6", use_errno=True)
numbers = (ctypes.c_int * 5)(5, 3, 9, 1, 7)
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc.qsort(numbers, 5, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: a[0] - b[0]))
print(list(numbers), libc.strlen(b"hello"), libc.abs(-5))


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int8), ("b", ctypes.c_int64)]


print(ctypes.sizeof(Pair), libc.open(b"/no/such", 0), errno.errorcode[ctypes.get_errno()])
libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.cos.restype = ctypes.c_double
print(libm.cos(ctypes.c_double(0)))
