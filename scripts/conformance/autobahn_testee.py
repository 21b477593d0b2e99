# The echo server of the Autobahn test suite on a port that the system chooses; prints one line of JSON: the port and the suite's
# categories. The suite's own command takes a port by number only. Python 2, as the suite.
import json
import sys

import autobahntestsuite
from autobahntestsuite.case import CaseCategories
from autobahntestsuite.testee import TesteeServerFactory
from twisted.internet import reactor

port = reactor.listenTCP(0, TesteeServerFactory(None), interface="127.0.0.1")
ready = {"port": port.getHost().port, "version": autobahntestsuite.version, "categories": CaseCategories}
sys.stdout.write(json.dumps(ready) + "\n")
sys.stdout.flush()
reactor.run()
