# Many small requests at once to a server in the same program, with a limit on how many.
import asyncio


async def handle(reader, writer):
    data = await reader.readexactly(4)
    await asyncio.sleep(0.005)
    writer.write(data[::-1])
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_unix_server(handle, "sock")
    limit = asyncio.Semaphore(10)

    async def one(i):
        async with limit:
            reader, writer = await asyncio.open_unix_connection("sock")
            writer.write(b"%04d" % i)
            answer = await reader.read()
            writer.close()
            return int(answer[::-1])

    print(sum(await asyncio.gather(*(one(i) for i in range(60)))))
    server.close()


asyncio.run(main())
