"""The shape of a model server: a request waits for as long as a small machine takes to read its context and to write its answer."""
import asyncio
import sys

from aiohttp import web

# Context tokens and generated tokens of ten requests: those at 5, 15, … 95 % of the 8,819 requests of `AzureLLMInferenceTrace_code.csv`, in the order
# of the duration that the two constants below give. Source: Azure Public Dataset, "Azure LLM Inference Trace 2023", CC-BY-4.0.
QUANTILES = [(364, 7), (713, 9), (358, 17), (1234, 13), (1555, 15), (3014, 6), (1595, 28), (2368, 33), (1474, 64), (1297, 105)]
READ_S = 0.001
WRITE_S = 0.1
DURATIONS_S = [context * READ_S + generated * WRITE_S for context, generated in QUANTILES]
HALF = len(DURATIONS_S) // 2


async def complete(request):
    # Each of a half in turn: 3 and 5 have no common factor.
    duration_s = DURATIONS_S[int(request.query["half"]) * HALF + int(request.query["n"]) * 3 % HALF]
    await asyncio.sleep(duration_s)
    with open(sys.argv[2], "a") as marks:
        marks.write(".")
    return web.json_response({"duration_s": duration_s})


async def application():
    app = web.Application()
    app.add_routes([web.get("/complete", complete)])
    return app


web.run_app(
    application(), host="127.0.0.1", port=int(sys.argv[1]), backlog=2048, access_log=None, print=None, shutdown_timeout=0.1
)
