# Compile a C program, run it, and use a library of it through ctypes.
import ctypes
import subprocess

with open("fib.c", "w") as f:
    f.write("""#include <stdio.h>
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { printf("%d\\n", fib(20)); return 0; }
""")
subprocess.run(["gcc", "-O1", "-o", "fib", "fib.c"], check=True)
print(subprocess.run(["./fib"], capture_output=True, text=True).stdout.strip())
subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libfib.so", "fib.c"], check=True)
print(ctypes.CDLL("./libfib.so").fib(15))
