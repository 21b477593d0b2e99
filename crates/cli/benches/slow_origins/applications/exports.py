"""Pages of some milliseconds, reports that compute for 1.5 s, and exports that wait 5 s for something else."""
import json
import os
import time

MARKS = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
RECORDS = json.dumps([{"customer": number * 7919 % 400, "cents": number * 104729 % 10_000} for number in range(16_000)])
REPORT_S = 1.5
EXPORT_S = 5.0


def summary():
    sums = {}
    for record in json.loads(RECORDS):
        sums.setdefault(record["customer"], []).append(record["cents"])
    return json.dumps([[customer, sum(cents), sorted(cents)[len(cents) // 2]] for customer, cents in sums.items()])


def report():
    # Of this thread's own time on the processor, not of the clock on the wall.
    ends = time.thread_time() + REPORT_S
    text = ""
    while time.thread_time() < ends:
        text = summary()
    return text


def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/export":
        time.sleep(EXPORT_S)
        text = "[]"
    else:
        text = report() if path == "/report" else summary()
    body = text.encode()
    # One byte for each answer that is done, also for clients that have left.
    os.write(MARKS, b".")
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
