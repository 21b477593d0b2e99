// Long polls beside pages, on Node's one thread. `/news` answers all polls at once, as news would.
'use strict';
const fs = require('node:fs');
const http = require('node:http');
const [port, marks] = process.argv.slice(2);
const done = fs.openSync(marks, 'a');
const page = require('./page.js');
const waiting = new Set();

// One byte for each answer that is done, also for clients that have left.
function answer(response, type, body) {
  fs.writeSync(done, '.');
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

function poll(response, seconds) {
  const end = () => {
    clearTimeout(timer);
    if (waiting.delete(end)) answer(response, 'application/json', '[]');
  };
  const timer = setTimeout(end, seconds * 1000);
  waiting.add(end);
  response.on('close', () => {
    clearTimeout(timer);
    waiting.delete(end);
  });
}

http.createServer((request, response) => {
  const url = new URL(request.url, 'http://origin');
  if (url.pathname === '/poll') return poll(response, Number(url.searchParams.get('s')));
  if (url.pathname === '/news') {
    for (const end of [...waiting]) end();
    return response.end();
  }
  answer(response, 'text/html', page());
}).listen(Number(port), '127.0.0.1', 2048);
