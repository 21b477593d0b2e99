// A service on Node's one thread: documents are parsed, sorted and rendered.
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const [port, marks] = process.argv.slice(2);
const done = fs.openSync(marks, 'a');
const documents = JSON.stringify(
  Array.from({ length: 24000 }, (_, number) => ({ title: `Document ${(number * 7919) % 24000}`, score: (number * 104729) % 10007 })),
);
http.createServer((request, response) => {
  const found = JSON.parse(documents).filter((document) => /7\d*1/.test(document.title));
  found.sort((one, other) => other.score - one.score || one.title.localeCompare(other.title));
  const body = found.map((document) => `<li>${document.title}: ${document.score}</li>`).join('\n');
  // One byte for each answer that is done, also for clients that have left.
  fs.writeSync(done, '.');
  response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}).listen(Number(port), '127.0.0.1', 2048);
