// Server-sent events and WebSockets that stay open, beside pages. Each stream gets an event every second.
'use strict';
const crypto = require('node:crypto');
const fs = require('node:fs');
const http = require('node:http');
const [port, marks] = process.argv.slice(2);
const done = fs.openSync(marks, 'a');
const page = require('./page.js');
const streams = new Set();

setInterval(() => {
  for (const send of streams) send();
}, 1000);

function keep(connection, send) {
  streams.add(send);
  connection.on('close', () => streams.delete(send));
  connection.on('error', () => streams.delete(send));
  send();
}

const server = http.createServer((request, response) => {
  if (request.url === '/events') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    return keep(response, () => response.write('data: tick\n\n'));
  }
  const body = page();
  // One byte for each answer that is done, also for clients that have left.
  fs.writeSync(done, '.');
  response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
});

server.on('upgrade', (request, socket) => {
  // RFC 6455, section 4.2.2: the key and this constant, hashed.
  const key = request.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
  const accept = crypto.createHash('sha1').update(key).digest('base64');
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`);
  socket.on('end', () => socket.end());
  socket.resume();
  // A text frame of four bytes, without a mask, as servers send it.
  keep(socket, () => socket.write(Buffer.from('\x81\x04tick', 'latin1')));
});

server.listen(Number(port), '127.0.0.1', 2048);
