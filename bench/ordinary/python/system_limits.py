# Resource limits and usage.
import resource
import subprocess
import sys

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
assert soft >= 256
resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
try:
    files = [open("/dev/null") for _ in range(200)]
except OSError as e:
    print(e.strerror)
files = None
code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); bytearray(1 << 29)"
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr.split()[-1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 1000, resource.getpagesize())
