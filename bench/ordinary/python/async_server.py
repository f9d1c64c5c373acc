# A server and its clients in one loop.
import asyncio


async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def ask(port, word):
    reader, writer = await asyncio.open_connection("localhost", port)
    writer.write(word.encode() + b"\n")
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer.decode().strip()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        print(await asyncio.gather(*(ask(port, w) for w in ("one", "two", "three"))))


asyncio.run(main())
