# asyncio: gather, wait_for, a task group, cancellation.
import asyncio


async def job(name, delay):
    await asyncio.sleep(delay)
    return name


async def main():
    print(await asyncio.gather(job("a", 0.03), job("b", 0.01), job("c", 0.02)))
    try:
        await asyncio.wait_for(job("slow", 10), 0.05)
    except asyncio.TimeoutError:
        print("timeout")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(job(i, 0.01)) for i in range(3)]
    print([t.result() for t in tasks])
    task = asyncio.create_task(job("x", 10))
    await asyncio.sleep(0)
    task.cancel()
    print((await asyncio.gather(task, return_exceptions=True))[0].__class__.__name__)


asyncio.run(main())
