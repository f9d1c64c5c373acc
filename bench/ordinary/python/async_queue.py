# An asynchronous pipeline: queue, generator, semaphore, context manager.
import asyncio
from contextlib import asynccontextmanager


@asynccontextmanager
async def stage(name):
    print("open", name)
    yield name
    print("close", name)


async def numbers(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i


async def main():
    queue, results, limit = asyncio.Queue(2), [], asyncio.Semaphore(2)

    async def consume():
        while (item := await queue.get()) is not None:
            async with limit:
                results.append(item ** 2)

    async with stage("pipeline"):
        task = asyncio.create_task(consume())
        async for i in numbers(6):
            await queue.put(i)
        await queue.put(None)
        await task
    print(results)


asyncio.run(main())
