# /proc, as monitoring programs read it.
import os

status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["Name"].strip().startswith("python"), int(status["Pid"]) == os.getpid(), int(status["Threads"]))
memory = {line.split(":")[0]: int(line.split()[1]) for line in open("/proc/meminfo")}
print(0 < memory["MemAvailable"] <= memory["MemTotal"])
print(open("/proc/stat").readline().split()[0], float(open("/proc/uptime").read().split()[0]) > 0)
print(os.readlink("/proc/self/exe").startswith("/usr/bin/python"), len(os.listdir("/proc/self/fd")) >= 3)
print("/" in [line.split()[1] for line in open("/proc/mounts")], "[stack]" in open("/proc/self/maps").read())
print(str(os.getpid()) in os.listdir("/proc"), "processor" in open("/proc/cpuinfo").read())
print(open("/proc/sys/kernel/ostype").read().strip(), open("/proc/self/cmdline").read().split("\0")[0] != "")
