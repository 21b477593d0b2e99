"""A report as a small Python service makes it: records are parsed, grouped and written as JSON."""
import json
import os

MARKS = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
RECORDS = json.dumps([{"customer": number * 7919 % 400, "cents": number * 104729 % 10_000} for number in range(20_000)])


def application(environ, start_response):
    sums = {}
    for record in json.loads(RECORDS):
        sums.setdefault(record["customer"], []).append(record["cents"])
    report = [{"customer": customer, "total": sum(cents), "median": sorted(cents)[len(cents) // 2]} for customer, cents in sums.items()]
    body = json.dumps(sorted(report, key=lambda line: -line["total"])).encode()
    # One byte for each report that is done, also for clients that have left.
    os.write(MARKS, b".")
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
