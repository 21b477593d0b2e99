"""The best customers of a product, asked of PostgreSQL; ten connections to it, for which requests wait."""
import json
import os
import queue

import psycopg2

CONNECTIONS = 10
BEST = """select customer, sum(cents) as total, max(product) from orders
          where product like '%7a%' and cents > 100 group by customer order by total desc limit 20"""
MARKS = os.open(os.environ["MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
POOL = queue.Queue()
for _ in range(CONNECTIONS):
    connection = psycopg2.connect(host=os.environ["DATABASE"], user="postgres", dbname="postgres")
    connection.autocommit = True
    POOL.put(connection)


def application(environ, start_response):
    connection = POOL.get()
    try:
        with connection.cursor() as cursor:
            cursor.execute(BEST)
            best = [[customer, int(total), product] for customer, total, product in cursor]
    finally:
        POOL.put(connection)
    body = json.dumps(best).encode()
    # One byte for each answer that is done, also for clients that have left.
    os.write(MARKS, b".")
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
