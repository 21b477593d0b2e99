"""Long polls and slow requests beside pages, on one event loop of asyncio. `/news` answers all polls at once, as news would."""
import asyncio
import json
import os
import sys

from aiohttp import web

MARKS = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
RECORDS = json.dumps([{"customer": number * 7919 % 400, "cents": number * 104729 % 10_000} for number in range(16_000)])


def answer(text):
    # One byte for each answer that is done, also for clients that have left.
    os.write(MARKS, b".")
    return web.json_response(text=text)


async def page(request):
    sums = {}
    for record in json.loads(RECORDS):
        sums.setdefault(record["customer"], []).append(record["cents"])
    return answer(json.dumps([[customer, sum(cents), sorted(cents)[len(cents) // 2]] for customer, cents in sums.items()]))


async def poll(request):
    try:
        await asyncio.wait_for(request.app["news"].wait(), float(request.query["s"]))
    except asyncio.TimeoutError:
        pass
    return answer("[]")


async def news(request):
    request.app["news"].set()
    request.app["news"].clear()
    return web.Response()


async def application():
    app = web.Application()
    app["news"] = asyncio.Event()
    app.add_routes([web.get("/poll", poll), web.get("/news", news), web.get("/{path:.*}", page)])
    return app


web.run_app(
    application(), host="127.0.0.1", port=int(sys.argv[1]), backlog=2048, access_log=None, print=None, shutdown_timeout=0.1
)
