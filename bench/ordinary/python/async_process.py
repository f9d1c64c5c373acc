# Child processes in an event loop.
import asyncio
import sys


async def main():
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "print(sum(int(x) for x in input().split()))",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    out, _ = await child.communicate(b"1 2 3 4\n")
    print(out.decode().strip(), child.returncode)
    shell = await asyncio.create_subprocess_shell("echo oops >&2; exit 4", stderr=asyncio.subprocess.PIPE)
    print((await shell.communicate())[1], shell.returncode)
    sleeper = await asyncio.create_subprocess_exec("sleep", "30")
    sleeper.terminate()
    print(await sleeper.wait())


asyncio.run(main())
