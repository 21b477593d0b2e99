"""Keep to what an overloaded service asks for: the field Flashweir-Overload (docs/feedback.md). Standard library only.

    limit = Limit("shop>api", {1: b"correct horse battery staple"})
    if not limit.admit(rank=3, now=time.monotonic()):
        ...                                # refuse here, at once: nothing was sent
    response = ...                         # send the request, with Flashweir-Sender: shop
    limit.hear(response.getheader("Flashweir-Overload"), time.monotonic())

One Limit for each server. Requests wait nowhere: a program that can wait tries `admit` again after a moment.
"""
import argparse, base64, binascii, hashlib, hmac, http.client, json, math, time
from urllib.parse import urlsplit

RELEASE = 2**32 - 1   # the rate that ends a limit
FLOOR = 0.1           # requests a second that go in any case
BURST = 2.0
EPOCH_MEMORY = 20.0   # seconds of silence after which an earlier epoch is believed


def parse(value, context, keys):
    """(epoch, sequence, rank, rate or None, seconds to live) of a field that is in order, or ValueError."""
    if len(value) not in (26, 46) or value[0] != ":" or value[-1] != ":":
        raise ValueError("not a Byte Sequence of the right length")
    try:
        data = base64.b64decode(value[1:-1].encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("not base64") from None
    if base64.b64encode(data).decode() != value[1:-1]:
        raise ValueError("padding bits are not zero")
    version, key = data[0] >> 4, data[0] & 15
    if version != 1 or len(data) != (17 if key == 0 else 33):
        raise ValueError("another version or length")
    if key == 0 and keys:
        raise ValueError("the message has no tag")
    if key:
        if key not in keys:
            raise ValueError("a key that is not there")
        signed = b"Flashweir-Overload/1" + len(context).to_bytes(8, "big") + context.encode() + data[:17]
        tag = hmac.new(keys[key], signed, hashlib.sha256).digest()[:16]
        if not hmac.compare_digest(tag, data[17:]):
            raise ValueError("the tag is wrong")
    number = lambda start, end: int.from_bytes(data[start:end], "big")
    rate, ttl_ms = number(11, 15), number(15, 17)
    if data[9] > 15 or data[10] > 8 or not 100 <= ttl_ms <= 10_000:
        raise ValueError("a number out of range")
    return number(1, 5), number(5, 9), data[9], None if rate == RELEASE else rate / 1000, ttl_ms / 1000


class Limit:
    def __init__(self, context, keys):
        self.context, self.keys, self.ignored = context, keys, 0
        self.newest = None               # epoch, sequence, when it came
        self.asked = None                # rank, rate, expires at, what was offered then
        self.offered, self.offered_at = 0.0, 0.0
        self.tokens, self.filled_at = BURST, 0.0

    def hear(self, value, now):
        """A response came; value is its field, or None."""
        if value is None:
            return
        try:
            epoch, sequence, rank, rate, ttl = parse(value, self.context, self.keys)
        except ValueError:
            self.ignored += 1
            return
        if self.newest:
            last_epoch, last_sequence, heard = self.newest
            is_newer = (epoch, sequence) > (last_epoch, last_sequence)
            if not is_newer and (epoch >= last_epoch or now - heard < EPOCH_MEMORY):
                return                   # a copy, a late message or a replay
        self.newest = (epoch, sequence, now)
        offered = self.offered * math.exp(self.offered_at - now)
        self.asked = None if rate is None else (rank, max(rate, offered / 100, FLOOR), now + ttl, offered)

    def limit(self, now):
        """(rank, requests a second) that holds now, or None."""
        if self.asked is None:
            return None
        rank, rate, expires, offered = self.asked
        if now < expires:
            return rank, rate
        age = now - expires              # not renewed: it opens step by step
        opening = max(rate, offered / 2) * 1.5**min(age, 10)
        return None if age >= 10 or opening >= 1.5 * offered else (rank, opening)

    def admit(self, rank, now):
        """Whether a request of this rank may be sent; then it counts as sent."""
        self.offered = self.offered * math.exp(self.offered_at - now) + 1
        self.offered_at = now
        limit = self.limit(now)
        if limit is None or rank < limit[0]:
            return True
        self.tokens = min(BURST, self.tokens + (now - self.filled_at) * limit[1])
        self.filled_at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


def main():
    parser = argparse.ArgumentParser(description="Send requests at a rate, as far as the service lets us.")
    parser.add_argument("url")
    parser.add_argument("--context", default="shop>api", help="both names, as both ends have them")
    parser.add_argument("--key", default="", help="NUMBER SECRET")
    parser.add_argument("--rank", type=int, default=15)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--requests", type=int, default=100)
    arguments = parser.parse_args()
    number, _, secret = arguments.key.partition(" ")
    limit = Limit(arguments.context, {int(number): secret.encode()} if secret else {})
    sender = {"Flashweir-Sender": arguments.context.partition(">")[0]}
    url, counts = urlsplit(arguments.url), {"sent": 0, "refused": 0, "failed": 0}
    connection, begun = http.client.HTTPConnection(url.netloc, timeout=10), time.monotonic()
    for index in range(arguments.requests):
        time.sleep(max(0.0, begun + index / arguments.rate - time.monotonic()))
        if not limit.admit(arguments.rank, time.monotonic()):
            counts["refused"] += 1
            continue
        try:
            connection.request("GET", url.path or "/", headers=sender)
            response = connection.getresponse()
            response.read()
            limit.hear(response.getheader("Flashweir-Overload"), time.monotonic())
            counts["sent"] += 1
        except (OSError, http.client.HTTPException):
            counts["failed"] += 1
            connection.close()
    print(json.dumps({**counts, "ignored": limit.ignored}))


if __name__ == "__main__":
    main()
