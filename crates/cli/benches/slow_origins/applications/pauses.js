// A service that stands still for 0.4 s in every 2 s, as a stop-the-world garbage collector makes it.
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const [port, marks] = process.argv.slice(2);
const done = fs.openSync(marks, 'a');
const page = require('./page.js');
const PERIOD_MS = 2000;
const PAUSE_MS = 400;

setInterval(() => {
  const ends = performance.now() + PAUSE_MS;
  while (performance.now() < ends);
}, PERIOD_MS);

http.createServer((request, response) => {
  const body = page();
  // One byte for each answer that is done, also for clients that have left.
  fs.writeSync(done, '.');
  response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}).listen(Number(port), '127.0.0.1', 2048);
