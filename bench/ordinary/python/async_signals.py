# A signal handler in the loop, and work in threads.
import asyncio
import hashlib
import os
import signal


async def main():
    loop, got = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, got.set)
    loop.call_later(0.02, os.kill, os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(got.wait(), 10)
    print("signal")
    digest = await asyncio.to_thread(lambda: hashlib.sha256(b"x" * 10**6).hexdigest())
    print(digest[:12])


asyncio.run(main())
