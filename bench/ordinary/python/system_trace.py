# Looking into oneself: tracebacks, profiles, memory, faults.
import cProfile
import faulthandler
import gc
import io
import pstats
import subprocess
import sys
import traceback
import tracemalloc

tracemalloc.start()
data = [bytes(1000) for _ in range(100)]
print(tracemalloc.get_traced_memory()[0] > 100_000)
profile = cProfile.Profile()
profile.runcall(sorted, range(1000))
out = io.StringIO()
pstats.Stats(profile, stream=out).print_stats()
print("function calls" in out.getvalue())
try:
    {}["missing"]
except KeyError:
    print(traceback.format_exc().splitlines()[-1])
faulthandler.enable()
done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", "import ctypes; ctypes.string_at(0)"],
                      capture_output=True, text=True)
print(done.returncode, "Segmentation fault" in done.stderr, gc.isenabled())
